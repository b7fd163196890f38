// The command line as its users start it: a process of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { MAIN, paddock } from './testkit/command-line.testkit.ts'

const GRPO = { estimator: 'grpo', settings: {}, input: { rewards: [1, 1], groups: ['g', 'g'] } }

describe('paddock', () => {
  test('a misspelt flag is answered with the one that was meant', async () => {
    const { out, err, code } = await paddock(['serve', '--prot', '1'])
    expect(code).toBe(1)
    expect(err).toContain('Did you mean --port?')
    expect(out).toBe('')
  })

  test.each([
    'serve',
    'config',
    'parse',
    'advantages',
    'validate',
    'replay',
    'play',
    'new task',
    'simulate',
    'demo',
    'doctor',
    'bench turns',
    'bench parser',
    'bench envs',
  ])('%s has a help with an example', async (verb) => {
    const { out, code } = await paddock([...verb.split(' '), '--help'])
    expect(code).toBe(0)
    expect(out).toContain('Example:')
    expect(out).toContain(`paddock ${verb}`)
  })

  test('the version is that of the package', async () => {
    const { out } = await paddock(['--version'])
    expect(out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })
})

describe('paddock doctor', () => {
  test.each([
    [['--mode', 'voice'], 'Allowed choices are chat, tokens.'],
    [['--temperature', 'hot'], 'Expected a number from 0 to 5.'],
    [['--backend', 'mian'], 'expected one of the backends of paddock.yaml (none), got mian'],
  ])('%j is wrong usage: exit code 2', async (args, sentence) => {
    const { out, err, code } = await paddock(['doctor', ...args])
    expect([out, code]).toEqual(['', 2])
    expect(err).toContain(sentence)
  })

  test('a dead endpoint is a finding: exit code 1', async () => {
    const args = ['doctor', '--url', 'http://127.0.0.1:9', '--pack', 'arithmetic']
    const { out, code } = await paddock(args)
    expect(code).toBe(1)
    expect(out).toMatch(/^✗ endpoint +endpoint_dead$/m)
    expect(out).toContain('1 finding')
  })
})

describe('paddock config', () => {
  test('settings are printed in the order flag, variable, default', async () => {
    const { out, code } = await paddock(['config', '--port', '7'], '', {
      PADDOCK_SERVER__PORT: '8',
      PADDOCK_RUNTIME__THREADS: '3',
    })
    expect(code).toBe(0)
    const printed = parseYaml(out)
    expect(printed.server.port).toBe(7)
    expect(printed.runtime).toMatchObject({ threads: 3, max_episodes: 64 })
  })

  test('a wrong setting goes to standard error without a stack, with one on request', async () => {
    const short = await paddock(['config', '--port', '70000'])
    expect(short).toMatchObject({ code: 1, out: '' })
    expect(short.err).toBe(
      'paddock: command line: server.port: expected at most 65535, found 70000\n',
    )
    const long = await paddock(['--verbose', 'config', '--port', '70000'])
    expect(long.err).toContain('\n    at ')
  })
})

describe('paddock serve', () => {
  test('an open address without a token is refused', async () => {
    const { err, code } = await paddock(['serve', '--host', '0.0.0.0', '--port', '0'])
    expect(code).toBe(1)
    expect(err).toContain('PADDOCK_SERVER__TOKEN')
  })

  test('a taken port ends it with the address and the number', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const { err, code } = await paddock(['serve', '--port', String(port)])
    taken.close()
    expect(code).toBe(1)
    expect(err).toContain(`127.0.0.1 port ${port}`)
  })
})

test('paddock serve says where it listens, on standard error only, and SIGTERM ends it with 0', async () => {
  const args = ['--import', 'tsx', MAIN, 'serve', '--port', '0', '--threads', '1']
  const child = spawn(process.execPath, args)
  const exited = once(child, 'exit')
  const out = text(child.stdout)
  for await (const line of createInterface({ input: child.stderr })) {
    const { msg, url } = JSON.parse(line)
    if (msg !== 'listening') continue
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    child.kill('SIGTERM')
  }
  expect(await exited).toEqual([0, null])
  expect(await out).toBe('')
})

describe('paddock advantages', () => {
  test('each line is answered by its name, in order; blank lines are skipped', async () => {
    const lines = ['a', 'b'].map((name) => JSON.stringify({ name, ...GRPO }))
    const { out, code } = await paddock(['advantages'], `${lines[0]}\r\n\n  \n${lines[1]}`)
    expect(code).toBe(0)
    // Equal rewards have no advantage over each other (advantages/SPEC: zero_std_group).
    expect(out).toBe('{"name":"a","advantages":[0,0]}\n{"name":"b","advantages":[0,0]}\n')
  })

  test('a question that cannot be answered is an answer', async () => {
    const { out, code } = await paddock(['advantages'], '{"name":"a","estimator":"grop"}\n')
    expect(JSON.parse(out)).toMatchObject({ name: 'a', error: { code: 'invalid_request' } })
    expect(code).toBe(0)
  })

  test('a line without a name asks nothing', async () => {
    const { out, code } = await paddock(['advantages'], JSON.stringify(GRPO))
    expect(JSON.parse(out).error.message).toBe('line 1: name: expected a string')
    expect(code).toBe(1)
  })

  test('a line that cannot be read says why, the others are answered, and the exit code is 1', async () => {
    const good = Buffer.from(`${JSON.stringify({ name: 'a', ...GRPO })}\n`)
    const bad = [
      Buffer.from('{"name":\n'),
      Buffer.from([0x22, 0xff, 0x22, 0x0a]),
      Buffer.from('[1]\n{"name":"x","rewards":NaN}\n'),
    ]
    const { out, code } = await paddock(['advantages'], Buffer.concat([...bad, good]))
    const answers = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(answers.map((answer) => answer.error?.code ?? answer.name)).toEqual([
      'malformed_json',
      'malformed_json',
      'invalid_request',
      'malformed_json',
      'a',
    ])
    expect(answers[1].error.message).toContain('line 2: expected UTF-8')
    expect(answers[3].error.message).toContain('NaN')
    expect(code).toBe(1)
  })
})

describe('paddock for authors of tasks', () => {
  const TASK = fileURLToPath(
    new URL('../envs/packs/office/tasks/dev-04-interview-slot.json', import.meta.url),
  )

  test('validate ends with 1 where one task is not ok, and with 0 where all are', async () => {
    const good = await paddock(['validate', TASK])
    expect(good).toMatchObject({ code: 0, err: '1 task, 1 ok, 0 not ok\n' })
    const mixed = await paddock(['validate', TASK, 'nowhere.json'])
    expect(mixed.code).toBe(1)
    expect(
      mixed.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).ok),
    ).toEqual([true, false])
  })

  test('replay ends with 0 after a transcript, with 1 and a sentence where there is none', async () => {
    const good = await paddock(['replay', 'dev-04-interview-slot', '--transcript', 'correct'])
    expect(good).toMatchObject({ code: 0, err: '' })
    expect(JSON.parse(good.out)).toMatchObject({ status: 'scored', score: 1 })
    const bad = await paddock(['replay', TASK, '--transcript', 'corect'])
    expect(bad).toMatchObject({ code: 1, out: '' })
    expect(bad.err).toContain('nearest is correct')
  })
})

describe('paddock parse', () => {
  const line = (body: string) =>
    JSON.stringify({ id: '1', format: 'hermes', tools: [], text: body })

  test('a line of 10 MB is answered', async () => {
    const body = 'x'.repeat(10 * 1024 * 1024)
    const { out, code } = await paddock(['parse'], `${line(body)}\n`)
    expect(code).toBe(0)
    const answer = JSON.parse(out)
    expect(answer.content).toBe(body)
    expect(answer).toMatchObject({ id: '1', reasoning: null, calls: [], errors: [], flags: [] })
  })

  test('a call is answered with its arguments as value and as text', async () => {
    const body = '<tool_call>\n{"name": "add", "arguments": {"a": 1.50}}\n</tool_call>'
    const { out, code } = await paddock(['parse'], `${line(body)}\n`)
    expect(code).toBe(0)
    expect(JSON.parse(out).calls).toEqual([
      expect.objectContaining({
        name: 'add',
        arguments: { a: 1.5 },
        arguments_json: '{"a":1.50}',
      }),
    ])
  })

  test('a line without a format could not be read', async () => {
    const { out, code } = await paddock(['parse'], '{"id":"1","text":"x"}\n')
    expect(JSON.parse(out)).toMatchObject({ id: '1', error: { code: 'invalid_request' } })
    expect(code).toBe(1)
  })
})
