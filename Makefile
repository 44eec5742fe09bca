# `make help` lists what there is. Only Go is needed for most of it; `up` also wants npm, `test-real` the servers.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PKG       ?= ./...
P         ?= 2
TIMEOUT   ?= 20m
ARGS      ?=
FUZZTIME  ?= 20s
BENCHTIME ?= 1s
FAULTS    ?= 1000
SEED      ?= 1
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS   := -X github.com/pointsman/pointsman/pkg/telemetry/buildinfo.version=$(VERSION)
BIN       := $(CURDIR)/bin

.PHONY: help up build test test-real test-tidb faults race lint verify generate fmt bench fuzz vuln

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1m%-10s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: ## Run everything on embedded parts with the demo (ARGS="--data DIR" keeps its state)
	go run ./services/pointsman up --demo $(ARGS)

build: ## Build every binary into bin/
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./services/...

test: ## Run all tests that need nothing but Go (and npm, once)
	go test -p $(P) -timeout $(TIMEOUT) $(PKG)

test-real: ## Run the tests on real servers (Kafka, Trino, Spark, PostgreSQL, MariaDB; each is skipped where it is not installed)
	go test -tags real -p 1 -timeout 30m -v $$(grep -rlE '^//go:build .*\breal\b' --include='*_test.go' . | xargs -n1 dirname | sort -u) | awk '/^(=== (RUN|PAUSE|CONT|NAME)|\?  )|level=DEBUG|the process is gone|unable to load producer ID/ {next} {print} /SKIP real / {n++} END {if (n) printf "%d tests on real servers were skipped; each says above which server is missing, and what it needs\n", n}'

test-tidb: ## Run the engine suite on TiDB, which is built from source once: ten minutes or more (not in CI)
	go test -tags tidb -timeout 90m -run TestTiDB -v ./pkg/engine/mysql | grep -v -E '^(=== (RUN|PAUSE|CONT|NAME)|\?  )'

faults: ## Inject faults into Tasks on real engines and print what became of them (FAULTS per engine, a tenth with Trino and Spark; SEED)
	go test -tags real -p 1 -timeout 90m -run 'TestFaultMatrix' -v ./test/faults -args -faults $(FAULTS) -seed $(SEED) $(ARGS)

race: ## Run all tests with the race detector
	go test -race -p $(P) -timeout 40m $(PKG)

lint: $(BIN)/golangci-lint ## Lint (builds the pinned golangci-lint on first use)
	$(BIN)/golangci-lint run $(PKG)

verify: ## Check formatting, vet, and that every generated file is up to date
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go' | xargs ls -d 2>/dev/null)); [ -z "$$unformatted" ] || { echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go vet -tags real ./test/... ./pkg/engine/... ./services/executor/...
	@state() { git diff | sha256sum; git ls-files -z --others --exclude-standard | xargs -0 -r sha256sum; }; \
	before=$$(state); $(MAKE) --no-print-directory generate; after=$$(state); \
	[ "$$before" = "$$after" ] || { echo "generated files were stale; commit what 'make generate' has changed:"; git status --short; exit 1; }

generate: ## Write generated files (reports, schemas, reference pages) again
	go generate ./...

fmt: $(BIN)/golangci-lint ## Format with gofumpt and sort imports
	$(BIN)/golangci-lint fmt

bench: ## Run benchmarks, then the pipeline against its parts (test/bench/pipeline); ratios mean something, times only here
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -p 1 -timeout 60m $(PKG)
	go run ./test/bench/pipeline $(ARGS)
	go run ./test/bench/execution
	@if command -v java >/dev/null && command -v mvn >/dev/null; then go run ./test/bench/pipeline -real -only router,latency $(ARGS); \
	else echo "make bench: java or mvn not found: nothing was measured on Apache Kafka"; fi

fuzz: ## Fuzz every fuzz target for FUZZTIME
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
	  dir=$$(dirname "$$file"); \
	  grep -ohE '^func Fuzz[A-Za-z0-9_]*' "$$file" | sed 's/^func //' | while read -r target; do \
	    echo "$$dir $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir"; \
	  done; \
	done

vuln: $(BIN)/govulncheck ## Look up known vulnerabilities (asks vuln.go.dev)
	$(BIN)/govulncheck ./...

# The tools are a module of their own, so that their dependencies are not ours.
$(BIN)/golangci-lint: tools/go.mod
	go build -C tools -o $(BIN)/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/staticcheck: tools/go.mod
	go build -C tools -o $(BIN)/ honnef.co/go/tools/cmd/staticcheck
$(BIN)/benchstat: tools/go.mod
	go build -C tools -o $(BIN)/ golang.org/x/perf/cmd/benchstat
$(BIN)/govulncheck: tools/go.mod
	go build -C tools -o $(BIN)/ golang.org/x/vuln/cmd/govulncheck
