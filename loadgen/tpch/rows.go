package tpch

// Row types: the schema of each table is read off them. Keys are 64 bits wide, money is decimal(15,2) held in cents,
// dates are days since 1970-01-01.

type regionRow struct {
	Key     int32  `parquet:"r_regionkey"`
	Name    string `parquet:"r_name"`
	Comment string `parquet:"r_comment"`
}

type nationRow struct {
	Key     int32  `parquet:"n_nationkey"`
	Name    string `parquet:"n_name"`
	Region  int32  `parquet:"n_regionkey"`
	Comment string `parquet:"n_comment"`
}

type supplierRow struct {
	Key     int64  `parquet:"s_suppkey"`
	Name    string `parquet:"s_name"`
	Address string `parquet:"s_address"`
	Nation  int32  `parquet:"s_nationkey"`
	Phone   string `parquet:"s_phone"`
	AcctBal int64  `parquet:"s_acctbal,decimal(2:15)"`
	Comment string `parquet:"s_comment"`
}

type customerRow struct {
	Key     int64  `parquet:"c_custkey"`
	Name    string `parquet:"c_name"`
	Address string `parquet:"c_address"`
	Nation  int32  `parquet:"c_nationkey"`
	Phone   string `parquet:"c_phone"`
	AcctBal int64  `parquet:"c_acctbal,decimal(2:15)"`
	Segment string `parquet:"c_mktsegment,dict"`
	Comment string `parquet:"c_comment"`
}

type partRow struct {
	Key          int64  `parquet:"p_partkey"`
	Name         string `parquet:"p_name"`
	Manufacturer string `parquet:"p_mfgr,dict"`
	Brand        string `parquet:"p_brand,dict"`
	Type         string `parquet:"p_type,dict"`
	Size         int32  `parquet:"p_size"`
	Container    string `parquet:"p_container,dict"`
	RetailPrice  int64  `parquet:"p_retailprice,decimal(2:15)"`
	Comment      string `parquet:"p_comment"`
}

type partSuppRow struct {
	Part       int64  `parquet:"ps_partkey"`
	Supplier   int64  `parquet:"ps_suppkey"`
	AvailQty   int32  `parquet:"ps_availqty"`
	SupplyCost int64  `parquet:"ps_supplycost,decimal(2:15)"`
	Comment    string `parquet:"ps_comment"`
}

type orderRow struct {
	Key          int64  `parquet:"o_orderkey"`
	Customer     int64  `parquet:"o_custkey"`
	Status       string `parquet:"o_orderstatus,dict"`
	TotalPrice   int64  `parquet:"o_totalprice,decimal(2:15)"`
	Date         int32  `parquet:"o_orderdate,date"`
	Priority     string `parquet:"o_orderpriority,dict"`
	Clerk        string `parquet:"o_clerk,dict"`
	ShipPriority int32  `parquet:"o_shippriority"`
	Comment      string `parquet:"o_comment"`
}

type lineRow struct {
	Order         int64  `parquet:"l_orderkey"`
	Part          int64  `parquet:"l_partkey"`
	Supplier      int64  `parquet:"l_suppkey"`
	Number        int32  `parquet:"l_linenumber"`
	Quantity      int64  `parquet:"l_quantity,decimal(2:15)"`
	ExtendedPrice int64  `parquet:"l_extendedprice,decimal(2:15)"`
	Discount      int64  `parquet:"l_discount,decimal(2:15)"`
	Tax           int64  `parquet:"l_tax,decimal(2:15)"`
	ReturnFlag    string `parquet:"l_returnflag,dict"`
	Status        string `parquet:"l_linestatus,dict"`
	ShipDate      int32  `parquet:"l_shipdate,date"`
	CommitDate    int32  `parquet:"l_commitdate,date"`
	ReceiptDate   int32  `parquet:"l_receiptdate,date"`
	Instruction   string `parquet:"l_shipinstruct,dict"`
	Mode          string `parquet:"l_shipmode,dict"`
	Comment       string `parquet:"l_comment"`
}

type eventRow struct {
	ID       int64  `parquet:"event_id"`
	Time     int64  `parquet:"event_time,timestamp(millisecond)"`
	Date     int32  `parquet:"event_date,date"`
	Session  string `parquet:"session_id"`
	Customer int64  `parquet:"custkey"`
	Type     string `parquet:"event_type,dict"`
	Page     string `parquet:"page"`
	Part     int64  `parquet:"partkey"`
	Device   string `parquet:"device,dict"`
	Nation   string `parquet:"nation,dict"`
	Duration int32  `parquet:"duration_ms"`
	Revenue  int64  `parquet:"revenue,decimal(2:15)"`
}
