// Test runner settings, and the one closing line that a CI log reader can count on.
import { defineConfig } from 'vitest/config'
import type { Reporter } from 'vitest/node'

/**
 * Ends the run with the files that failed, where any did, and `N passed, N failed, N skipped`. A file that failed to load
 * counts as a failure, and so does an error outside of all tests.
 */
const plainTotals: Reporter = {
  onTestRunEnd(modules, unhandledErrors) {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules)
      for (const test of module.children.allTests()) count[test.result().state]++
    const unloaded = modules.filter((module) => module.errors().length > 0).length
    const failed = count.failed + unloaded + unhandledErrors.length
    const files = [
      ...modules.filter((module) => !module.ok()).map((module) => module.relativeModuleId),
      ...unhandledErrors.map(({ VITEST_TEST_PATH }) => VITEST_TEST_PATH ?? ''),
    ]
    if (failed > 0) console.log(`\nfailed files: ${[...new Set(files)].join(' ')}`)
    console.log(`\n${count.passed} passed, ${failed} failed, ${count.skipped} skipped`)
  },
}

export default defineConfig({
  test: {
    include: ['{server,rollout,envs,reward,protocol,bench}/**/*.test.ts'],
    reporters: ['default', plainTotals],
    // A process that starts takes a second here and twenty where others build beside it.
    testTimeout: process.env.CI ? 60_000 : 20_000,
    maxWorkers: 2,
    // Tests of real sockets, clocks and processes: on a machine that stalls, one of thousands may miss its time once.
    retry: process.env.CI ? 1 : 0,
  },
})
