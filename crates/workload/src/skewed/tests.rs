//! Tests of the address distributions.

mod zipf {
    use super::super::*;

    fn exact(n: u64, theta: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().rev().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    #[test]
    fn small_ranges_pass_chi_square() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.2, 2.5] {
            let (n, draws) = (100, 1_000_000);
            let zipf = Zipf::new(n, n, theta);
            let mut random = Prng::new(11);
            let mut seen = vec![0_u32; n as usize];
            for _ in 0..draws {
                seen[zipf.draw(&mut random) as usize - 1] += 1;
            }
            let chi2: f64 = exact(n, theta)
                .iter()
                .zip(&seen)
                .map(|(p, &count)| (p * f64::from(draws), f64::from(count)))
                .map(|(expected, count)| (count - expected).powi(2) / expected)
                .sum();
            // With 99 degrees of freedom, 0.5 % of the values lie below 66.5 and 0.5 % lie above
            // 139.
            assert!((60.0..145.0).contains(&chi2), "theta {theta}: chi-square {chi2}");
        }
    }

    #[test]
    fn a_million_ranks_pass_kolmogorov_smirnov() {
        for theta in [0.5, 0.99, 1.0, 1.2] {
            let (n, draws) = (1_000_000, 200_000);
            let zipf = Zipf::new(n, n, theta);
            let mut random = Prng::new(5);
            let mut seen = vec![0_u32; n as usize];
            (0..draws).for_each(|_| seen[zipf.draw(&mut random) as usize - 1] += 1);
            let (mut ours, mut truth, mut worst) = (0.0, 0.0, 0.0_f64);
            for (p, &count) in exact(n, theta).iter().zip(&seen) {
                ours += f64::from(count) / f64::from(draws);
                truth += p;
                worst = worst.max((ours - truth).abs());
            }
            assert!(worst < 1.63 / f64::from(draws).sqrt(), "theta {theta}: distance {worst}");
        }
    }

    #[test]
    fn a_part_of_the_range_has_the_skew_of_the_whole() {
        let (ranks, units, draws) = (1_000_000_u64, 1000_u64, 200_000);
        let (zipf, mut random) = (Zipf::new(ranks, units, 1.0), Prng::new(2));
        let mut seen = vec![0_u32; units as usize];
        (0..draws).for_each(|_| seen[zipf.draw_unit(&mut random) as usize] += 1);
        let share = |first: u64, end: u64| -> f64 {
            exact(ranks, 1.0)[first as usize..end as usize].iter().sum()
        };
        let near = |count: u32, part: f64| (f64::from(count) / 2e5 - part).abs() < 0.005;
        assert!(near(seen[0], share(0, 1000)), "{}", seen[0]);
        assert!(near(seen[1..100].iter().sum(), share(1000, 100_000)), "{:?}", &seen[1..9]);
    }

    #[test]
    fn ranks_stay_inside_the_largest_drives() {
        for (n, theta) in [(1, 1.0), (2, 0.001), (1 << 35, 0.9), (1 << 35, 10.0)] {
            let zipf = Zipf::new(n, n, theta);
            let mut random = Prng::new(1);
            assert!((0..10_000).all(|_| (1..=n).contains(&zipf.draw(&mut random))), "{n} {theta}");
        }
    }
}

mod fio_zipf {
    use super::super::*;

    /// Returns the access counts of all accessed blocks in descending order.
    fn counts(n: u64, theta: f64, draws: usize) -> Vec<usize> {
        let (zipf, mut random) = (FioZipf::new(n, theta), Prng::new(7));
        let mut blocks: Vec<u64> = (0..draws).map(|_| zipf.draw(&mut random)).collect();
        blocks.sort_unstable();
        let mut counts: Vec<usize> = blocks.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn hottest_and_unique_blocks_are_those_of_fio() {
        // fio 3.33 results for two million 4 KiB I/Os over 960 GB: access counts of the two hottest
        // blocks, and accessed block count.
        for (theta, first, second, unique) in
            [(0.8, 16_473, 9_458, 1_616_091), (0.99, 109_716, 55_941, 847_969)]
        {
            let counts = counts(234_375_000, theta, 2_000_000);
            let near = |ours: usize, fio: usize| ours.abs_diff(fio) * 20 < fio;
            assert!(near(counts[0], first) && near(counts[1], second), "{:?}", &counts[..2]);
            assert!(near(counts.len(), unique), "{}", counts.len());
        }
    }

    #[test]
    fn the_sum_of_weights_is_that_of_all_ranks() {
        for theta in [0.3, 0.99, 1.7] {
            let all: f64 = (1..=1_000_000_u64).map(|rank| (rank as f64).powf(-theta)).sum();
            let quick = weights(1_000_000, theta);
            assert!((quick / all - 1.0).abs() < 1e-9, "theta {theta}: {quick}, {all}");
        }
    }

    #[test]
    fn ranks_collide_unless_the_range_is_a_power_of_two() {
        let accessed_share = |n: u64| counts(n, 0.2, 15 * n as usize).len() as f64 / n as f64;
        assert!(accessed_share(1 << 16) > 0.999, "{}", accessed_share(1 << 16));
        let share = accessed_share(60_000);
        assert!((share - (1.0 - 1.0_f64.exp().recip())).abs() < 0.05, "{share}");
    }

    #[test]
    fn blocks_stay_inside_the_range() {
        for (n, theta) in [(1, 0.5), (2, 2.0), (3, 0.99), (1 << 35, 10.0)] {
            let (zipf, mut random) = (FioZipf::new(n, theta), Prng::new(1));
            assert!((0..10_000).all(|_| zipf.draw(&mut random) < n), "{n} {theta}");
        }
    }
}

mod pareto {
    use super::super::*;

    #[test]
    fn a_share_of_the_blocks_takes_the_rest_of_the_accesses_at_every_scale() {
        for hot in [0.1_f64, 0.2, 0.4] {
            let (n, draws) = (1_u64 << 30, 400_000);
            let pareto = Pareto::new(n, 100.0 * hot);
            let mut random = Prng::new(3);
            let ranks: Vec<u64> = (0..draws).map(|_| pareto.draw(&mut random)).collect();
            for level in 1..4 {
                let below = (n as f64 * hot.powi(level)) as u64;
                let share = ranks.iter().filter(|&&rank| rank < below).count() as f64 / 4e5;
                let expected = (1.0 - hot).powi(level);
                let tolerance = 4.0 * (expected * (1.0 - expected) / 4e5).sqrt();
                assert!((share - expected).abs() < tolerance, "{hot} {level}: {share}");
            }
        }
    }

    #[test]
    fn ranks_stay_inside_the_range() {
        for n in [1, 2, 3, 1 << 35] {
            let (pareto, mut random) = (Pareto::new(n, 99.0), Prng::new(1));
            assert!((0..10_000).all(|_| pareto.draw(&mut random) < n));
        }
    }
}

mod normal {
    use super::super::*;

    #[test]
    fn ranks_have_the_mean_and_deviation_and_shape_of_the_bell() {
        let (n, draws) = (1_000_000_u64, 400_000);
        let (normal, mut random) = (Normal::new(n, 8.0), Prng::new(9));
        let ranks: Vec<f64> = (0..draws).map(|_| normal.draw(&mut random) as f64).collect();
        let mean = ranks.iter().sum::<f64>() / f64::from(draws);
        let variance = ranks.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / f64::from(draws);
        assert!((mean - 5e5).abs() < 4.0 * 8e4 / 4e5_f64.sqrt(), "{mean}");
        assert!((variance.sqrt() / 8e4 - 1.0).abs() < 0.005, "{}", variance.sqrt());
        for (within, expected) in [(8e4, 0.6827), (1.6e5, 0.9545)] {
            let share = ranks.iter().filter(|r| (*r - 5e5).abs() < within).count() as f64 / 4e5;
            // The sum of twelve uniform numbers differs from a normal distribution by less than
            // 0.004 in this test.
            assert!((share - expected).abs() < 0.006, "{within}: {share}");
        }
    }

    #[test]
    fn ranks_stay_inside_the_range() {
        for (n, deviation) in [(1, 50.0), (3, 100.0), (1 << 35, 100.0)] {
            let (normal, mut random) = (Normal::new(n, deviation), Prng::new(1));
            assert!((0..10_000).all(|_| normal.draw(&mut random) < n));
        }
    }
}

mod zoned {
    use super::super::*;

    fn zone(access_pct: f64, size_pct: f64) -> Zone {
        Zone { access_pct, size_pct }
    }

    fn spec(kind: AddressKind, zones: &[Zone]) -> AddressSpec {
        AddressSpec { kind, zones: zones.to_vec(), ..AddressSpec::default() }
    }

    #[test]
    fn jesd219_zones_get_their_shares() {
        let zones = [zone(50.0, 5.0), zone(30.0, 15.0), zone(20.0, 80.0)];
        let generator = Zoned::new(&spec(AddressKind::Zoned, &zones), 100_000);
        let mut random = Prng::new(3);
        let draws = 1_000_000;
        // Each zone has twenty cells, which are all equally likely within the zone.
        let mut seen = [[0_u32; 20]; 3];
        for _ in 0..draws {
            let unit = generator.draw(&mut random);
            let (zone, first, size) = match unit {
                0..5000 => (0, 0, 5000),
                5000..20_000 => (1, 5000, 15_000),
                _ => (2, 20_000, 80_000),
            };
            seen[zone][((unit - first) * 20 / size) as usize] += 1;
        }
        let chi2: f64 = zones
            .iter()
            .zip(&seen)
            .flat_map(|(zone, cells)| cells.iter().map(move |&count| (zone.access_pct, count)))
            .map(|(pct, count)| (f64::from(draws) * pct / 100.0 / 20.0, f64::from(count)))
            .map(|(expected, count)| (count - expected).powi(2) / expected)
            .sum();
        // With 59 degrees of freedom, 0.5 % of the values lie below 34 and 0.5 % lie above 91.
        assert!((30.0..95.0).contains(&chi2), "chi-square {chi2}");
    }

    #[test]
    fn hot_and_cold_are_two_zones() {
        let generator = Zoned::new(&spec(AddressKind::HotCold, &[zone(80.0, 20.0)]), 1000);
        let mut random = Prng::new(9);
        let hot = (0..100_000).filter(|_| generator.draw(&mut random) < 200).count();
        assert!((79_500..80_500).contains(&hot), "{hot}");
    }

    #[test]
    fn every_zone_has_at_least_one_unit() {
        let zones = [zone(1.0, 0.001), zone(1.0, 0.001), zone(98.0, 99.998)];
        let generator = Zoned::new(&spec(AddressKind::Zoned, &zones), 3);
        let sizes: Vec<u64> = generator.zones.iter().map(|piece| piece.units).collect();
        assert_eq!(sizes, [1, 1, 1]);
    }

    #[test]
    fn a_zone_with_a_share_of_0_percent_is_never_accessed() {
        let zones = [zone(33.3, 10.0), zone(66.7, 10.0), zone(0.0, 80.0)];
        let generator = Zoned::new(&spec(AddressKind::Zoned, &zones), 1000);
        let mut random = Prng::new(1);
        assert!((0..100_000).all(|_| generator.draw(&mut random) < 200));
        assert_eq!(generator.last_used().unwrap().first, 100);
    }
}

mod scatter {
    use super::super::*;

    #[test]
    fn scattering_is_a_bijection_that_keeps_pieces_whole() {
        for (units, length) in [(1, 1), (1000, 1), (1003, 4), (3, 8), (4096, 16)] {
            let scatter = Scatter::new(units, length, 5);
            let placed: Vec<u64> = (0..units).map(|unit| scatter.apply(unit)).collect();
            let mut sorted = placed.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..units).collect::<Vec<_>>(), "{units} in pieces of {length}");
            for piece in placed.chunks(length as usize) {
                assert!(piece.windows(2).all(|pair| pair[1] == pair[0] + 1), "{piece:?}");
            }
        }
    }
}
