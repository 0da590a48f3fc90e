import { searchPlugins } from '../../set.ts'
import { abortOnInterrupt } from '@svc/cli/program'
import { clipped, oneLine, table, visible } from '@svc/cli/command'

const DATE = 'YYYY-MM-DD'.length
const HEAD = ['NAME', 'VERSION', 'OF', 'WHAT IT DOES']

/** `svc plugins search`: what the registry has under the keyword svc-plugin. */
export async function searchRegistry({ text, json }: { readonly text: string; readonly json: boolean }): Promise<number> {
  using interrupt = abortOnInterrupt()
  const found = await searchPlugins(text, { signal: interrupt.signal })
  if (json) process.stdout.write(`${JSON.stringify({ plugins: found }, null, 2)}\n`)
  else if (found.length === 0) process.stderr.write('the registry has no plugin like that (keyword svc-plugin)\n')
  else {
    const rows = found.map(one =>
      [one.name, one.version, one.date.slice(0, DATE), clipped(oneLine(one.description), 80)].map(text => visible(oneLine(text)))
    )
    process.stdout.write(`${table([HEAD, ...rows])}\n`)
  }
  return 0
}
