package lex

// Word is a keyword that the lexer or its readers know. Zero means that a word is an ordinary name.
type Word uint16

// The keywords. A name of the same spelling behind or before a dot, or in quotes, is never one.
const (
	NoWord Word = iota
	KwSelect
	KwFrom
	KwWhere
	KwAnd
	KwOr
	KwXor
	KwNot
	KwIn
	KwLike
	KwIlike
	KwRlike
	KwRegexp
	KwBetween
	KwIs
	KwCase
	KwWhen
	KwThen
	KwElse
	KwEnd
	KwNull
	KwTrue
	KwFalse
	KwValues
	KwValue
	KwAs
	KwOn
	KwUsing
	KwJoin
	KwInner
	KwLeft
	KwRight
	KwFull
	KwCross
	KwOuter
	KwNatural
	KwSemi
	KwAnti
	KwLateral
	KwOrder
	KwGroup
	KwPartition
	KwBy
	KwHaving
	KwLimit
	KwOffset
	KwFetch
	KwUnion
	KwIntersect
	KwExcept
	KwMinus
	KwAll
	KwDistinct
	KwAny
	KwSome
	KwExists
	KwInterval
	KwInto
	KwInsert
	KwUpdate
	KwDelete
	KwMerge
	KwReplace
	KwCreate
	KwAlter
	KwDrop
	KwTruncate
	KwCall
	KwExec
	KwExecute
	KwSet
	KwShow
	KwDescribe
	KwDesc
	KwExplain
	KwAnalyze
	KwWith
	KwRecursive
	KwOver
	KwWindow
	KwQualify
	KwReturning
	KwFor
	KwTable
	KwView
	KwCast
	KwTryCast
	KwDefault
	KwReturn
	KwEscape
	KwDiv
	KwRows
	KwRange
	KwSettings
	KwFormat
	KwPrewhere
	KwSample
	KwFinal
	KwGlobal
	KwAsof
	KwArray
	KwUnnest
	KwOnly
	KwBegin
	KwCommit
	KwRollback
	KwStart
	KwGrant
	KwRevoke
	KwUse
	KwRefresh
	KwComment
	KwOptimize
	KwLoad
	KwCopy
	KwKill
	KwLock
	KwUnlock
	KwCache
	KwUncache
	KwVacuum
	KwAnalyse
	KwReset
	KwDeclare
	KwPrepare
	KwDeallocate
	KwExport
	KwImport
	KwIf
	KwDatabase
	KwSchema
	KwIndex
	KwFunction
	KwProcedure
	KwMaterialized
	KwTemporary
	KwTemp
	KwExternal
	KwOverwrite
	KwIgnore
	KwLowPriority
	KwDelayed
	KwHighPriority
	KwStraightJoin
	KwApply
	KwTablesample
	KwPivot
	KwUnpivot
	KwMatchRecognize
	KwWithin
	KwFilter
	KwGrouping
	KwSets
	KwRollup
	KwCube
	KwMatched
	KwDo
	KwNothing
	KwDuplicate
	KwKey
	KwColumn
	KwShare
	KwMode
	KwOf
	KwNo
	KwFirst
	KwNext
	KwTop
	KwOrdinality
	KwDate
	KwTime
	KwTimestamp
	KwAsc
	KwCluster
	KwDistribute
	KwSort
	KwConnect
	KwConvert
	KwSeparator
	KwCollate
	KwSkip
	KwNowait
	KwOutfile
	KwDumpfile
	KwInfile
	KwExtended
	KwVerbose
	KwNulls
	KwRename
	KwAdd
	KwRownum
	KwPurge
	KwFlush
	KwCheck
	KwMsck
	KwRepair
	KwReload
	KwAttach
	KwDetach
	KwExchange
	KwUndrop
	KwSavepoint
	KwRelease
	KwAbort
	KwDiscard
	KwListen
	KwNotify
	KwUnlisten
	KwReindex
	KwSecurity
	KwHandler
	KwInstall
	KwUninstall
	KwHelp
	KwBinlog
	KwChange
	KwStop
	KwRestart
	KwShutdown
	KwResume
	KwSuspend
	KwCancel
	KwBackup
	KwRestore
	KwRecover
	KwSync
	KwSubmit
	KwAdmin
	KwUnset
	KwList
	KwPause
	KwTransaction
	KwTables
	KwColumns
	KwFields
	KwPartitions
	KwBranches
	KwBranch
	KwTag
	KwIndexes
	KwKeys
	KwCatalog
	KwCatalogs
	KwDatabases
	KwSchemas
	KwRole
	KwUser
	KwPrivileges
	KwStatistics
	KwStats
	KwPolicy
	KwResource
	KwWorkload
	KwRoutine
	KwJob
	KwPipe
	KwExtension
	KwSequence
	KwType
	KwDomain
	KwTrigger
	KwEvent
	KwServer
	KwPublication
	KwSubscription
	KwDictionary
	KwSnapshot
	KwSnapshots
	KwConstraint
	KwCurrent
	KwRow
	KwRestrict
	KwCascade
	KwLocal
	KwPublic
	KwOption
	KwOptions
	wordCount
)

// wordFlag says what a keyword means to the lexer.
type wordFlag uint8

const (
	expects wordFlag = 1 << iota // an operand comes next
	clause                       // ends a BY list and a list of VALUES
	verb                         // may head a statement
)

type wordInfo struct {
	text  string
	flags wordFlag
}

var words = [wordCount]wordInfo{
	KwSelect:         {"select", expects | clause | verb},
	KwFrom:           {"from", expects | clause},
	KwWhere:          {"where", expects | clause},
	KwAnd:            {"and", expects},
	KwOr:             {"or", expects},
	KwXor:            {"xor", expects},
	KwNot:            {"not", expects},
	KwIn:             {"in", expects},
	KwLike:           {"like", expects},
	KwIlike:          {"ilike", expects},
	KwRlike:          {"rlike", expects},
	KwRegexp:         {"regexp", expects},
	KwBetween:        {"between", expects},
	KwIs:             {"is", expects},
	KwCase:           {"case", expects},
	KwWhen:           {"when", expects},
	KwThen:           {"then", expects},
	KwElse:           {"else", expects},
	KwEnd:            {"end", 0},
	KwNull:           {"null", 0},
	KwTrue:           {"true", 0},
	KwFalse:          {"false", 0},
	KwValues:         {"values", expects | verb},
	KwValue:          {"value", 0},
	KwAs:             {"as", expects},
	KwOn:             {"on", expects | clause},
	KwUsing:          {"using", 0},
	KwJoin:           {"join", expects},
	KwInner:          {"inner", 0},
	KwLeft:           {"left", 0},
	KwRight:          {"right", 0},
	KwFull:           {"full", 0},
	KwCross:          {"cross", 0},
	KwOuter:          {"outer", 0},
	KwNatural:        {"natural", 0},
	KwSemi:           {"semi", 0},
	KwAnti:           {"anti", 0},
	KwLateral:        {"lateral", 0},
	KwOrder:          {"order", 0},
	KwGroup:          {"group", 0},
	KwPartition:      {"partition", 0},
	KwBy:             {"by", expects},
	KwHaving:         {"having", expects | clause},
	KwLimit:          {"limit", expects | clause},
	KwOffset:         {"offset", expects | clause},
	KwFetch:          {"fetch", expects | clause},
	KwUnion:          {"union", expects | clause},
	KwIntersect:      {"intersect", expects | clause},
	KwExcept:         {"except", expects | clause},
	KwMinus:          {"minus", expects | clause},
	KwAll:            {"all", expects},
	KwDistinct:       {"distinct", expects},
	KwAny:            {"any", 0},
	KwSome:           {"some", 0},
	KwExists:         {"exists", expects},
	KwInterval:       {"interval", expects},
	KwInto:           {"into", expects | clause},
	KwInsert:         {"insert", verb},
	KwUpdate:         {"update", verb},
	KwDelete:         {"delete", verb},
	KwMerge:          {"merge", verb},
	KwReplace:        {"replace", verb},
	KwCreate:         {"create", verb},
	KwAlter:          {"alter", verb},
	KwDrop:           {"drop", verb},
	KwTruncate:       {"truncate", verb},
	KwCall:           {"call", verb},
	KwExec:           {"exec", verb},
	KwExecute:        {"execute", verb},
	KwSet:            {"set", expects | clause | verb},
	KwShow:           {"show", verb},
	KwDescribe:       {"describe", verb},
	KwDesc:           {"desc", verb},
	KwExplain:        {"explain", verb},
	KwAnalyze:        {"analyze", verb},
	KwWith:           {"with", clause},
	KwRecursive:      {"recursive", 0},
	KwOver:           {"over", 0},
	KwWindow:         {"window", clause},
	KwQualify:        {"qualify", expects | clause},
	KwReturning:      {"returning", expects | clause},
	KwFor:            {"for", clause},
	KwTable:          {"table", 0},
	KwView:           {"view", 0},
	KwCast:           {"cast", 0},
	KwTryCast:        {"try_cast", 0},
	KwDefault:        {"default", expects},
	KwReturn:         {"return", expects},
	KwEscape:         {"escape", expects},
	KwDiv:            {"div", expects},
	KwRows:           {"rows", 0},
	KwRange:          {"range", 0},
	KwSettings:       {"settings", clause},
	KwFormat:         {"format", clause},
	KwPrewhere:       {"prewhere", expects | clause},
	KwSample:         {"sample", 0},
	KwFinal:          {"final", 0},
	KwGlobal:         {"global", 0},
	KwAsof:           {"asof", 0},
	KwArray:          {"array", 0},
	KwUnnest:         {"unnest", 0},
	KwOnly:           {"only", 0},
	KwBegin:          {"begin", verb},
	KwCommit:         {"commit", verb},
	KwRollback:       {"rollback", verb},
	KwStart:          {"start", verb},
	KwGrant:          {"grant", verb},
	KwRevoke:         {"revoke", verb},
	KwUse:            {"use", verb},
	KwRefresh:        {"refresh", verb},
	KwComment:        {"comment", verb},
	KwOptimize:       {"optimize", verb},
	KwLoad:           {"load", verb},
	KwCopy:           {"copy", verb},
	KwKill:           {"kill", verb},
	KwLock:           {"lock", verb},
	KwUnlock:         {"unlock", verb},
	KwCache:          {"cache", verb},
	KwUncache:        {"uncache", verb},
	KwVacuum:         {"vacuum", verb},
	KwAnalyse:        {"analyse", verb},
	KwReset:          {"reset", verb},
	KwDeclare:        {"declare", verb},
	KwPrepare:        {"prepare", verb},
	KwDeallocate:     {"deallocate", verb},
	KwExport:         {"export", verb},
	KwImport:         {"import", verb},
	KwIf:             {"if", 0},
	KwDatabase:       {"database", 0},
	KwSchema:         {"schema", 0},
	KwIndex:          {"index", 0},
	KwFunction:       {"function", 0},
	KwProcedure:      {"procedure", 0},
	KwMaterialized:   {"materialized", 0},
	KwTemporary:      {"temporary", 0},
	KwTemp:           {"temp", 0},
	KwExternal:       {"external", 0},
	KwOverwrite:      {"overwrite", 0},
	KwIgnore:         {"ignore", 0},
	KwLowPriority:    {"low_priority", 0},
	KwDelayed:        {"delayed", 0},
	KwHighPriority:   {"high_priority", 0},
	KwStraightJoin:   {"straight_join", expects},
	KwApply:          {"apply", 0},
	KwTablesample:    {"tablesample", 0},
	KwPivot:          {"pivot", 0},
	KwUnpivot:        {"unpivot", 0},
	KwMatchRecognize: {"match_recognize", 0},
	KwWithin:         {"within", 0},
	KwFilter:         {"filter", 0},
	KwGrouping:       {"grouping", 0},
	KwSets:           {"sets", 0},
	KwRollup:         {"rollup", 0},
	KwCube:           {"cube", 0},
	KwMatched:        {"matched", 0},
	KwDo:             {"do", expects | verb},
	KwNothing:        {"nothing", 0},
	KwDuplicate:      {"duplicate", 0},
	KwKey:            {"key", 0},
	KwColumn:         {"column", 0},
	KwShare:          {"share", 0},
	KwMode:           {"mode", 0},
	KwOf:             {"of", 0},
	KwNo:             {"no", 0},
	KwFirst:          {"first", 0},
	KwNext:           {"next", 0},
	KwTop:            {"top", 0},
	KwOrdinality:     {"ordinality", 0},
	KwDate:           {"date", 0},
	KwTime:           {"time", 0},
	KwTimestamp:      {"timestamp", 0},
	KwAsc:            {"asc", 0},
	KwCluster:        {"cluster", 0},
	KwDistribute:     {"distribute", 0},
	KwSort:           {"sort", 0},
	KwConnect:        {"connect", 0},
	KwConvert:        {"convert", 0},
	KwSeparator:      {"separator", 0},
	KwCollate:        {"collate", 0},
	KwSkip:           {"skip", 0},
	KwNowait:         {"nowait", 0},
	KwOutfile:        {"outfile", 0},
	KwDumpfile:       {"dumpfile", 0},
	KwInfile:         {"infile", 0},
	KwExtended:       {"extended", 0},
	KwVerbose:        {"verbose", 0},
	KwNulls:          {"nulls", 0},
	KwRename:         {"rename", 0},
	KwAdd:            {"add", verb},
	KwRownum:         {"rownum", 0},
	KwPurge:          {"purge", verb},
	KwFlush:          {"flush", verb},
	KwCheck:          {"check", verb},
	KwMsck:           {"msck", verb},
	KwRepair:         {"repair", verb},
	KwReload:         {"reload", verb},
	KwAttach:         {"attach", verb},
	KwDetach:         {"detach", verb},
	KwExchange:       {"exchange", verb},
	KwUndrop:         {"undrop", verb},
	KwSavepoint:      {"savepoint", verb},
	KwRelease:        {"release", verb},
	KwAbort:          {"abort", verb},
	KwDiscard:        {"discard", verb},
	KwListen:         {"listen", verb},
	KwNotify:         {"notify", verb},
	KwUnlisten:       {"unlisten", verb},
	KwReindex:        {"reindex", verb},
	KwSecurity:       {"security", verb},
	KwHandler:        {"handler", verb},
	KwInstall:        {"install", verb},
	KwUninstall:      {"uninstall", verb},
	KwHelp:           {"help", verb},
	KwBinlog:         {"binlog", verb},
	KwChange:         {"change", verb},
	KwStop:           {"stop", verb},
	KwRestart:        {"restart", verb},
	KwShutdown:       {"shutdown", verb},
	KwResume:         {"resume", verb},
	KwSuspend:        {"suspend", verb},
	KwCancel:         {"cancel", verb},
	KwBackup:         {"backup", verb},
	KwRestore:        {"restore", verb},
	KwRecover:        {"recover", verb},
	KwSync:           {"sync", verb},
	KwSubmit:         {"submit", verb},
	KwAdmin:          {"admin", verb},
	KwUnset:          {"unset", verb},
	KwList:           {"list", verb},
	KwPause:          {"pause", verb},
	KwTransaction:    {"transaction", 0},
	KwTables:         {"tables", 0},
	KwColumns:        {"columns", 0},
	KwFields:         {"fields", 0},
	KwPartitions:     {"partitions", 0},
	KwBranches:       {"branches", 0},
	KwBranch:         {"branch", 0},
	KwTag:            {"tag", 0},
	KwIndexes:        {"indexes", 0},
	KwKeys:           {"keys", 0},
	KwCatalog:        {"catalog", 0},
	KwCatalogs:       {"catalogs", 0},
	KwDatabases:      {"databases", 0},
	KwSchemas:        {"schemas", 0},
	KwRole:           {"role", 0},
	KwUser:           {"user", 0},
	KwPrivileges:     {"privileges", 0},
	KwStatistics:     {"statistics", 0},
	KwStats:          {"stats", 0},
	KwPolicy:         {"policy", 0},
	KwResource:       {"resource", 0},
	KwWorkload:       {"workload", 0},
	KwRoutine:        {"routine", 0},
	KwJob:            {"job", 0},
	KwPipe:           {"pipe", 0},
	KwExtension:      {"extension", 0},
	KwSequence:       {"sequence", 0},
	KwType:           {"type", 0},
	KwDomain:         {"domain", 0},
	KwTrigger:        {"trigger", 0},
	KwEvent:          {"event", 0},
	KwServer:         {"server", 0},
	KwPublication:    {"publication", 0},
	KwSubscription:   {"subscription", 0},
	KwDictionary:     {"dictionary", 0},
	KwSnapshot:       {"snapshot", 0},
	KwSnapshots:      {"snapshots", 0},
	KwConstraint:     {"constraint", 0},
	KwCurrent:        {"current", 0},
	KwRow:            {"row", 0},
	KwRestrict:       {"restrict", 0},
	KwCascade:        {"cascade", 0},
	KwLocal:          {"local", 0},
	KwPublic:         {"public", 0},
	KwOption:         {"option", 0},
	KwOptions:        {"options", 0},
}

// wordMultiplier makes wordSlot collision-free over the table above; a test holds that.
const (
	wordMultiplier = 0xd958b1e68cd03261
	wordBits       = 12
)
