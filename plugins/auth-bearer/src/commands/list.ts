import { systemUse } from '@svc/core'
import { type Command, Store } from '@svc/core/contracts'
import { COMMON, readLine, USAGE } from '../line.ts'
import type { TokenShown } from '../record.ts'
import { createTokens } from '../tokens.ts'

const HEAD = ['ID', 'NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED']

/** `svc tokens list`: what was given out, without the tokens, which nobody has kept. */
const list: Command = async ({ args, signal, host, print, note }) => {
  const { values } = readLine(args, USAGE.list, COMMON, 0)
  const use = systemUse(signal, 'svc tokens list')
  const tokens = createTokens((await host()).service(Store))
  await tokens.open(use)
  const all = await tokens.list(use)
  if (values.json) return print(JSON.stringify({ tokens: all }))
  if (all.length === 0) return note('there are no tokens; `svc tokens create` makes one')
  for (const line of table([HEAD, ...all.map(cells)])) print(line)
}

export default list

function cells({ id, name, scopes, created, expires, used }: TokenShown): string[] {
  const end = Date.parse(expires) <= Date.now() ? `${expires} (expired)` : expires
  return [id, name, scopes.join(' '), created, end, used ?? 'never']
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd()
  )
}
