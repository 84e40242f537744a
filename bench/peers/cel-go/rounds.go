package main

import (
	"runtime"
	"slices"
	"time"
)

const (
	rounds = 5
	// Long enough that reading the clock and pauses of the garbage collector are negligible.
	round = 40 * time.Millisecond
)

// The time of one run in nanoseconds: the median of several rounds of many runs.
func median(run func()) int64 {
	// The first round warms up and determines the number of runs in a round.
	runs := 0
	for start := time.Now(); time.Since(start) < round; runs++ {
		run()
	}
	times := make([]int64, rounds)
	for i := range times {
		runtime.GC()
		start := time.Now()
		for range runs {
			run()
		}
		times[i] = time.Since(start).Nanoseconds() / int64(runs)
	}
	slices.Sort(times)
	return times[rounds/2]
}
