// CEL's conformance suite, as released. To move to another version: change it below, run `go mod tidy`, and run
// `cargo xtask conformance cel`.
module bellwether.dev/conformance/cel-suite

go 1.26.0

require (
	cel.dev/expr v0.25.3
	google.golang.org/protobuf v1.36.11
)
