module bellwether.dev/bench/measure

go 1.26.0
