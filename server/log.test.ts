// The log: no secret of the settings gets into it, wherever it stands.
import { expect, test } from 'vitest'
import { loadConfig } from './config.ts'
import { createLog } from './log.ts'

test('a secret is in no line, neither by its name nor inside other text', () => {
  const config = loadConfig({
    file: null,
    flags: {
      server: { token: 'canary-"one"' },
      backends: {
        main: { dialect: 'vllm', url: 'http://user:canary-two@b', model: 'm', api_key: 'canary-3' },
      },
    },
  })
  const lines: string[] = []
  const log = createLog(config, (line) => lines.push(line))
  log.info({ authorization: 'Bearer unknown-canary', headers: { token: 'unknown-canary' } }, 'a')
  log.error({ err: new Error('http://user:canary-two@b refused canary-3') }, 'with canary-"one"')
  const text = lines.join('')
  expect(text).not.toContain('canary')
  expect(lines.map((line) => JSON.parse(line).level)).toEqual(['info', 'error'])
})

test('the level of the settings is kept', () => {
  const lines: string[] = []
  const config = loadConfig({ file: null, flags: { log: { level: 'warn' } } })
  const log = createLog(config, (line) => lines.push(line))
  log.info('quiet')
  log.warn('loud')
  expect(lines).toHaveLength(1)
})
