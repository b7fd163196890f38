// Starts a simulated policy endpoint. Prints one JSON line when it serves; what goes wrong is on stderr.
import { createProgram, readOptions } from './flags.ts'
import { startSimulator } from './server.ts'

// Nothing here is worth saving, so the process ends without waiting for requests under way.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
// With a channel to its parent it ends when the parent is gone, whatever ended that.
process.on('disconnect', () => process.exit(0))

try {
  const options = await readOptions(createProgram(), process.argv.slice(2))
  const { url } = await startSimulator(options)
  const { model, weightVersion } = options
  console.log(JSON.stringify({ url, model, weight_version: weightVersion }))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  // The channel to a parent would keep the process alive.
  process.exit(1)
}
