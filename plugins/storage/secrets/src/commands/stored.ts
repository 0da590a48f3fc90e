import type { CommandContext, SecretInfo } from '@svc/core/contracts'
import { reloadUsers } from './uses.ts'

/** A secret as JSON. */
export const infoRecord = ({ name, source, state, createdAt, changedAt, keyId }: SecretInfo) => ({
  name,
  source,
  state,
  created_at: timeOf(createdAt),
  changed_at: timeOf(changedAt),
  key_id: keyId ?? null,
})

const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

export async function printStored(command: CommandContext, info: SecretInfo, json: boolean): Promise<void> {
  if (json) command.print(JSON.stringify(infoRecord(info)))
  else command.print(`stored ${info.name}, sealed with the key ${info.keyId}`)
  await reloadUsers(command, info.name)
}
