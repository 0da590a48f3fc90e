import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'

/** What the system's own accounts have in the place of a home. */
const NONE = /^(\/|\/(usr|bin|sbin|dev|proc|nonexistent)(\/.*)?)$/

/** The homes of this machine's people, as its list of accounts names them. */
export async function homesOfPeople(): Promise<readonly string[]> {
  const listed = await readFile('/etc/passwd', 'utf8').catch(() => '')
  const homes = listed.split('\n').flatMap(line => line.split(':')[5] ?? [])
  return [...new Set([homedir(), ...homes.filter(home => !NONE.test(home))])]
}
