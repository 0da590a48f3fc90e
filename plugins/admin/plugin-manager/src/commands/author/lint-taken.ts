import { findPackageJSON } from 'node:module'
import { commandsOf, type Manifest, readManifest, slotsOf } from '@svc/core'
import { DEFAULTS, reservedFor, OURS } from '@svc/cli/program'
import type { Finding, Linted } from './finding.ts'

/** Names that svc or one of its own plugins has: the server of who installs it would not start. */
export async function takenFindings({ info }: Linted): Promise<Finding[]> {
  if (info === undefined) return []
  const taken = await curatedNames()
  const names = slotsOf(info.manifest).flatMap(([slot, list]) =>
    list.flatMap(name => taken.get(`${slot} ${name}`)?.map(by => nameTaken(slot, name, by)) ?? [])
  )
  return [...names, ...commandsOf(info.manifest).flatMap(commandFindings), ...topicFindings(info.manifest)]
}

const nameTaken = (slot: string, name: string, by: string): Finding => ({
  level: 'error',
  code: 'NAME_TAKEN',
  message: `${slot} has a "${name}" already, of ${by}`,
  hint: 'choose another name',
  where: 'package.json',
})

function commandFindings(name: string): Finding[] {
  const by = reservedFor(name.split(' '))
  return by === undefined ? [] : [{ ...nameTaken('commands', name, by), code: 'COMMAND_TAKEN' }]
}

/** First words of commands that help has no line for. */
const topicFindings = (manifest: Manifest): Finding[] =>
  [...new Set(commandsOf(manifest).flatMap(name => (name.includes(' ') ? [name.split(' ')[0]!] : [])))]
    .filter(topic => manifest.topics?.[topic] === undefined)
    .map(topic => ({
      level: 'warning',
      code: 'TOPIC_UNDESCRIBED',
      message: `\`svc --help\` has no line of its own for "${topic}": it shows the description of the package`,
      hint: `add "topics": { "${topic}": "…" } to the "svc" part`,
      where: 'package.json',
    }))

/** What the curated plugins declare by name: `tools read_file` → who. */
async function curatedNames(): Promise<ReadonlyMap<string, string[]>> {
  const names = new Map<string, string[]>()
  for (const plugin of DEFAULTS.plugins as readonly string[]) {
    const { manifest } = await readManifest(findPackageJSON(plugin, OURS)!)
    for (const [slot, name] of namesIn(manifest)) names.set(`${slot} ${name}`, [...(names.get(`${slot} ${name}`) ?? []), plugin])
  }
  return names
}

/** Slot and name of all that a manifest declares word for word; commands are none. */
export const namesIn = (manifest: Manifest): (readonly [slot: string, name: string])[] =>
  slotsOf(manifest).flatMap(([slot, list]) => list.flatMap(name => (name.includes('*') ? [] : [[slot, name] as const])))
