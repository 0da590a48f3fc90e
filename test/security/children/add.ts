// Adds tool servers to a file, one after the other, once a line comes on the standard input: node add.ts <file> <prefix> <count>.
import { once } from 'node:events'
import { addToFile } from '../../../plugins/mcp/client/src/registry/configured-servers.ts'

const [file = '', prefix = '', count = ''] = process.argv.slice(2)
process.stdout.write('ready\n')
await once(process.stdin, 'data')
for (let at = 0; at < Number(count); at++)
  await addToFile(file, [{ name: `${prefix}${at}`, url: 'http://127.0.0.1:9000/mcp' } as never])
process.exit()
