// Package measure times a health check on the objects of files, and prints a line of JSON for each.
package measure

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

const (
	rounds = 5
	// Long enough that reading the clock and pauses of the garbage collector are negligible.
	round = 40 * time.Millisecond
)

// Check is a peer: how it decodes and assesses an object.
type Check[T any] struct {
	Decode func(json []byte) (T, error)
	// Assess returns the verdict in one word; empty if the peer has no rule for the kind.
	Assess func(object T) (string, error)
}

type line struct {
	File   string `json:"file"`
	NS     int64  `json:"ns"`
	Allocs uint64 `json:"allocs"`
	Bytes  uint64 `json:"bytes"`
	RuleNS int64  `json:"rule_ns"`
	Status string `json:"status"`
}

// Files measures the check for each file on the command line.
func Files[T any](check Check[T]) {
	output := json.NewEncoder(os.Stdout)
	for _, path := range os.Args[1:] {
		line, err := file(path, check)
		if err == nil {
			err = output.Encode(line)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

func file[T any](path string, check Check[T]) (line, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return line{}, err
	}
	object, err := check.Decode(text)
	if err != nil {
		return line{}, err
	}
	status, err := check.Assess(object)
	if err != nil {
		return line{}, err
	}

	both := median(func() {
		object, _ := check.Decode(text)
		_, _ = check.Assess(object)
	})
	rule := median(func() { _, _ = check.Assess(object) })
	return line{
		File:   filepath.Base(path),
		NS:     both.ns,
		Allocs: both.allocs,
		Bytes:  both.bytes,
		RuleNS: rule.ns,
		Status: status,
	}, nil
}

// The cost of one run.
type cost struct {
	ns            int64
	allocs, bytes uint64
}

func median(run func()) cost {
	// The first round warms up and determines the number of runs in a round.
	runs := 0
	for start := time.Now(); time.Since(start) < round; runs++ {
		run()
	}
	costs := make([]cost, rounds)
	for i := range costs {
		costs[i] = once(run, runs)
	}
	slices.SortFunc(costs, func(a, b cost) int { return int(a.ns - b.ns) })
	return costs[rounds/2]
}

func once(run func(), runs int) cost {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range runs {
		run()
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return cost{
		ns:     took.Nanoseconds() / int64(runs),
		allocs: (after.Mallocs - before.Mallocs) / uint64(runs),
		bytes:  (after.TotalAlloc - before.TotalAlloc) / uint64(runs),
	}
}
