// Test runner settings, and the one closing line that a CI log reader can count on.
import { defineConfig } from 'vitest/config'
import type { Reporter } from 'vitest/node'

/** Ends the run with `N passed, N failed, N skipped`; a file that failed to load counts as a failure. */
const plainTotals: Reporter = {
  onTestRunEnd(modules) {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules)
      for (const test of module.children.allTests()) count[test.result().state]++
    const failed = count.failed + modules.filter((module) => module.errors().length > 0).length
    console.log(`\n${count.passed} passed, ${failed} failed, ${count.skipped} skipped`)
  },
}

export default defineConfig({
  test: {
    include: ['{server,rollout,envs,reward,protocol,bench}/**/*.test.ts'],
    reporters: ['default', plainTotals],
    testTimeout: 20_000,
    maxWorkers: 2,
    // Tests of real sockets, clocks and processes: on a machine that stalls, one of thousands may miss its time once.
    retry: process.env.CI ? 1 : 0,
  },
})
