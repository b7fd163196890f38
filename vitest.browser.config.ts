// The tests that need Debian's Chromium: `pnpm browser`.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['server/**/*.browser.ts'],
    testTimeout: 60_000,
    retry: process.env.CI ? 1 : 0,
    fileParallelism: false,
  },
})
