// A batch that brings an engine of its own: asked instead of the backend's address, where the settings allow its host.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSimulator } from '../bench/simulator/server.ts'
import { type House, openHouse, scripts } from './testkit/house.testkit.ts'
import { backendAt, clientOf, requestTo } from './testkit/policy-client.testkit.ts'

let house: House
let engine: Awaited<ReturnType<typeof startSimulator>>
beforeAll(async () => {
  house = await openHouse()
  engine = await startSimulator({ scripts: scripts(), weightVersion: '42' })
}, 60_000)
afterAll(async () => {
  await house.close()
  await engine.close()
})

const batch = (url: string) => ({
  tasks: [{ task: 'arithmetic/sum-0' }],
  group_size: 2,
  policy: { backend: 'sglang', mode: 'tokens', url },
})

test('the engine of the batch samples every token', async () => {
  const { groups } = await house.run(batch(`${engine.url}/v1`))
  expect(groups.map(({ policy }) => policy.version_min)).toEqual([42])
  expect((await house.stats()).requests['/generate']).toBeUndefined()
})

test('a host that the settings do not name is refused', async () => {
  const refused = house.api.submit(batch('http://169.254.169.254/latest'))
  await expect(refused).rejects.toThrow('169.254.169.254')
})

test('the backend’s key goes to the backend’s own address only', async () => {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = async (own: string) => {
    const main = backendAt([own], { dialect: 'sglang', api_key: 'sk-1' })
    const client = clientOf({ main })
    const request = requestTo('main', { url })
    await client.ask(request, performance.now() + 5000, new AbortController().signal)
    await client.close()
  }
  await ask('http://127.0.0.1:1')
  await ask(url)
  server.close()
  expect(seen).toEqual([undefined, 'Bearer sk-1'])
})
