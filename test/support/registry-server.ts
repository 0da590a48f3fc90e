// A registry for test/support/registry.ts: node registry-server.ts <folder>; writes its port once it listens, and ends with its standard input.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { runServer } from 'verdaccio'

const folder = process.argv[2]!
const server = await runServer({
  configPath: join(folder, 'config.yaml'), // where it would look for plugins of its own
  storage: join(folder, 'packages'),
  uplinks: {},
  packages: { '**': { access: '$all', publish: '$all', unpublish: '$all' } },
  auth: { htpasswd: { file: join(folder, 'htpasswd') } },
  log: { type: 'stdout', format: 'json', level: 'fatal' },
  web: { enable: false },
  max_body_size: '100mb',
} as never)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
process.exit(0)
