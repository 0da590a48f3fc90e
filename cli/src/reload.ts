import { svcHome, systemContext } from '@svc/core'
import { reachServer } from '@svc/runtime'
import { reloadedFacts, reloadedText } from './announcer.ts'

/** Reloads the running server; resolves with the exit code: 1 when its new configuration has faults. */
export async function reload({ port, json }: { port?: number | undefined; json?: boolean | undefined }): Promise<number> {
  using server = await reachServer(svcHome(), { port })
  const result = await server.control.reload(systemContext(new AbortController().signal, 'svc reload'))
  const failed = result.problems.length > 0
  const text = json ? JSON.stringify(reloadedFacts(result)) : await reloadedText(result)
  const stream = failed && !json ? process.stderr : process.stdout
  stream.write(`${text}\n`)
  return failed ? 1 : 0
}
