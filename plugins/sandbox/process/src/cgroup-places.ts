import { readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Kind } from './holding.ts'
import { isWithin } from './paths.ts'

/** Folders of one hierarchy of control groups in which a group might be made: the own one first, then those above. */
export interface Hierarchy {
  readonly version: 1 | 2
  /** Of version 1: what the hierarchy is for. */
  readonly kinds: readonly Kind[]
  readonly folders: readonly string[]
}

const KINDS: readonly Kind[] = ['memory', 'pids']

/** The hierarchies of this machine as this process sees them. */
export async function hierarchies(): Promise<Hierarchy[]> {
  const [mounts, own] = await Promise.all(['/proc/self/mountinfo', '/proc/self/cgroup'].map(read))
  const groups = own!.split('\n').map(line => /^\d+:([^:]*):(.*)$/.exec(line))
  return mounts!.split('\n').flatMap(line => {
    const [, root, at, type, options] = /^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(line) ?? []
    if (root === undefined || at === undefined) return []
    const words = options!.split(',')
    const version = type === 'cgroup2' ? 2 : 1
    const kinds = version === 2 ? KINDS : KINDS.filter(kind => words.includes(kind))
    const group = groups.find(one => one && (version === 2 ? one[1] === '' : one[1]!.split(',').includes(kinds[0] ?? '')))
    return group && kinds.length > 0 ? [{ version, kinds, folders: foldersOf(at, root, group[2]!) }] : []
  })
}

/** A container may see only a part of the hierarchy: its `root`. */
function foldersOf(at: string, root: string, group: string): string[] {
  const own = isWithin(group, root) ? join(at, relative(root, group)) : at
  const folders = [own]
  while (folders.at(-1) !== at) folders.push(dirname(folders.at(-1)!))
  return folders
}

const read = (file: string) => readFile(file, 'utf8').catch(() => '')
