import { systemUse } from '@svc/core'
import { type Command, Store } from '@svc/core/contracts'
import { COMMON, readLine, USAGE } from '../line.ts'
import { createTokens } from '../tokens.ts'

/** `svc tokens revoke <name or id>`: answers once no worker of any server accepts it any more. */
const revoke: Command = async ({ args, signal, host, print }) => {
  const { values, positionals } = readLine(args, USAGE.revoke, COMMON, 1)
  const use = systemUse(signal, 'svc tokens revoke')
  const tokens = createTokens((await host()).service(Store))
  await tokens.open(use)
  const gone = await tokens.revoke(positionals[0] ?? '', use)
  if (values.json) return print(JSON.stringify({ revoked: gone }))
  for (const { id, name } of gone) print(`revoked ${id} (${name})`)
}

export default revoke
