# The recipes of Pluralis. `make quickstart` does the main job; `make test` runs the tests.
.PHONY: quickstart test build lint docs tools

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
CONFIG ?= experiments/quickstart.toml
FLAGS ?=

# The main job: builds with the embedded judge, fetches the model, tunes on the quickstart's items.
quickstart: tools
	cargo build --release --features local
	target/release/pluralis model pull smollm2-135m
	OMP_WAIT_POLICY=passive target/release/pluralis tune $(CONFIG) $(FLAGS)

# What llama.cpp needs to be built; installed with apt where that is allowed.
tools:
	@missing=""; \
	for tool in cmake clang; do command -v $$tool >/dev/null 2>&1 || missing="$$missing $$tool"; done; \
	ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* >/dev/null 2>&1 || missing="$$missing libclang-dev"; \
	if [ -n "$$missing" ]; then \
	  sudo=""; [ "$$(id -u)" = 0 ] || sudo="sudo -n"; \
	  if command -v apt-get >/dev/null 2>&1 && $$sudo true 2>/dev/null; then \
	    echo "installing:$$missing"; $$sudo apt-get update -qq && $$sudo apt-get install -y -qq$$missing >/dev/null; \
	  else \
	    echo "the build needs:$$missing. Run: sudo apt-get install -y cmake clang libclang-dev"; exit 1; \
	  fi; \
	fi

# All tests; with the embedded judge's where its model is there. Skipped tests say why.
test:
	@if command -v cargo-nextest >/dev/null 2>&1; then \
	  cargo nextest run --no-fail-fast --status-level fail --final-status-level slow --success-output final $(FLAGS) 2>&1 \
	    | grep -vE '^ *$$|running 1 test|test result: ok|^ *test .* \.\.\. ok'; \
	else \
	  cargo test $(FLAGS) -- --nocapture; \
	fi

build:
	cargo build --release

lint:
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
