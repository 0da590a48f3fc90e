// Reads files as often as it can until each is there: node reader.ts <folder> <count>. Prints which of them it has seen empty.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const [folder = '', count = ''] = process.argv.slice(2)
const empty = new Set<string>()
process.stdout.write('reads\n')
for (let at = 0; at < Number(count); at++) {
  const file = join(folder, `${at}.yaml`)
  while (lengthOf(file) === 0) continue
}
process.stdout.write(JSON.stringify([...empty]))

function lengthOf(file: string): number {
  try {
    const { length } = readFileSync(file)
    if (length === 0) empty.add(file)
    return length
  } catch {
    return 0 // it is not there yet
  }
}
