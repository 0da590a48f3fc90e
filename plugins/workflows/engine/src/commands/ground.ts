import { systemContext, type CallContext } from '@svc/core'
import { type CommandContext, Store, Workflows } from '@svc/core/contracts'
import { storeForgets } from '../errors.ts'

export const contextOf = ({ signal }: CommandContext, command: string): CallContext =>
  systemContext(signal, `svc workflows ${command}`)

/** The workflows of the configured host, in this process. */
export const openWorkflows = async (call: CommandContext): Promise<Workflows> => (await call.host()).service(Workflows)

/** The same where runs of other processes are meant. Throws STORE_FORGETS where the store has none. */
export async function openRuns(call: CommandContext, ctx: CallContext): Promise<Workflows> {
  const { durable, kind } = await (await call.host()).service(Store).probe(ctx)
  if (!durable) throw storeForgets(kind)
  return openWorkflows(call)
}
