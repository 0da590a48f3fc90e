import type { TeamDefinition } from '@svc/core/contracts'
import { type Asked, members, type Script } from './host.ts'

/** A team with these members. */
export const team = (
  formation: TeamDefinition['formation'],
  names: readonly string[],
  more: Partial<TeamDefinition> = {}
): TeamDefinition => ({
  name: 'crew',
  formation,
  members: members(...names),
  ...more,
})
export const names = (asked: readonly Asked[]) => asked.map(({ member }) => member)
/** Like the script, but this member fails. */
export const failing =
  (member: string, script: Script): Script =>
  item =>
    item.member === member ? new Error(`${member} is ill`) : script(item)
export const ECHO: Script = ({ member }) => `word of ${member}`
