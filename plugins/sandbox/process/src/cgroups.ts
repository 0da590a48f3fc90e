import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { access, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { Released } from '@svc/core/contracts'
import { attempt, type Hold, type LimitMechanism, type LimitKind, type LimitValues, NOTHING } from './limits.ts'
import { isWithin } from './paths.ts'

/** The files of a cgroup version: for limits, and for events when a limit is exceeded. */
interface Files {
  readonly limits: Readonly<Record<LimitKind, string>>
  /**
   * A process that writes 0 here moves itself into the group. In version 1 `tasks` moves a single thread, which is enough for a shell: the kernel does not
   * have to stop the whole machine for it.
   */
  readonly enter: string
  /** Forbids swap. The file is missing if the kernel does not count swap. */
  readonly swap: (bytes: number) => readonly [file: string, value: string]
  readonly events: Readonly<Record<LimitKind, readonly [file: string, word: string]>>
}
const FILES: Readonly<Record<1 | 2, Files>> = {
  2: {
    limits: { memory: 'memory.max', pids: 'pids.max' },
    enter: 'cgroup.procs',
    swap: () => ['memory.swap.max', '0'],
    events: { memory: ['memory.events', 'oom_kill'], pids: ['pids.events', 'max'] },
  },
  1: {
    limits: { memory: 'memory.limit_in_bytes', pids: 'pids.max' },
    enter: 'tasks',
    swap: bytes => ['memory.memsw.limit_in_bytes', String(bytes)],
    events: { memory: ['memory.oom_control', 'oom_kill'], pids: ['pids.events', 'max'] },
  },
}

/** A folder in which svc can make groups that enforce these kinds of limits. */
interface CgroupParent {
  readonly version: 1 | 2
  readonly kinds: readonly LimitKind[]
  readonly folder: string
}

/** A shell script (bash and dash) that moves itself into each group, then becomes the program. If it cannot, nothing runs. */
const ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 126; shift; done; shift; exec "$@"'
/** Prefix of the names of this process's groups. */
const OURS = `svc-${process.pid}-`
/** Processes of bubblewrap itself, which count too. */
const OWN = 2
const TRIAL: LimitValues = { memory: 67_108_864, pids: 16 }

/** Finds out which limits control groups of a version can enforce, by making one and moving a process into it. */
export async function cgroupHolder(version: 1 | 2): Promise<LimitMechanism | undefined> {
  const found = (await hierarchies()).filter(hierarchy => hierarchy.version === version)
  const parents = (await Promise.all(found.map(parentIn))).filter(parent => parent !== undefined)
  if (parents.length === 0) return undefined
  await Promise.all(parents.map(clearUp))
  return { name: `cgroup${version}`, kinds: parents.flatMap(parent => parent.kinds), hold: limits => hold(parents, limits) }
}

async function parentIn({ version, kinds, folders }: Hierarchy): Promise<CgroupParent | undefined> {
  for (const folder of folders) {
    const held = (await Promise.all(kinds.map(kind => holds({ version, kinds: [kind], folder })))).flatMap((is, at) =>
      is ? [kinds[at]!] : []
    )
    if (held.length > 0) return { version, kinds: held, folder }
  }
  return undefined
}

async function holds(parent: CgroupParent): Promise<boolean> {
  try {
    const tried = await hold([parent], TRIAL)
    const [file, ...args] = tried.before
    const { worked, out } = await attempt(file!, [...args, '/bin/cat', '/proc/self/cgroup'])
    await tried.release()
    return worked && out.includes(`/${OURS}`)
  } catch {
    // read-only, no such controller, or not permitted: another folder can work
    return false
  }
}

async function hold(parents: readonly CgroupParent[], limits: LimitValues): Promise<Hold> {
  const name = `${OURS}${randomUUID()}`
  const wanted = parents.filter(parent => parent.kinds.some(kind => limits[kind] !== undefined))
  const groups = wanted.map(parent => ({ ...parent, folder: join(parent.folder, name) }))
  const release = () => releaseAll(groups)
  try {
    await Promise.all(groups.map(group => make(group, limits)))
  } catch (error) {
    await release()
    throw error
  }
  const files = groups.map(({ version, folder }) => join(folder, FILES[version].enter))
  return { before: ['/bin/sh', '-c', ENTER, 'svc', ...files, '--'], within: [], env: {}, release }
}

// synchronous: these files are in kernel memory, and a start waits for all of them in turn
async function make({ version, kinds, folder }: CgroupParent, limits: LimitValues): Promise<void> {
  const { limits: files, swap } = FILES[version]
  mkdirSync(folder)
  if (version === 2) await enable(folder, kinds)
  const put = (file: string, value: string) => writeFileSync(join(folder, file), value, { flag: 'r+' })
  if (kinds.includes('pids') && limits.pids !== undefined) put(files.pids, String(limits.pids + OWN))
  if (!kinds.includes('memory') || limits.memory === undefined) return
  put(files.memory, String(limits.memory))
  try {
    put(...swap(limits.memory))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** Enables controllers that the parent has but does not delegate yet. This fails if the parent has processes of its own. */
async function enable(folder: string, kinds: readonly LimitKind[]): Promise<void> {
  const missing = await Promise.all(
    kinds.map(kind =>
      access(join(folder, FILES[2].limits[kind])).then(
        () => [],
        () => [`+${kind}`]
      )
    )
  )
  if (missing.flat().length > 0) await writeFile(join(dirname(folder), 'cgroup.subtree_control'), missing.flat().join(' '))
}

async function releaseAll(groups: readonly CgroupParent[]): Promise<Released> {
  const all = await Promise.all(groups.map(remove))
  return { outOfMemory: all.some(item => item.outOfMemory), outOfPids: all.some(item => item.outOfPids) }
}

const ROUNDS = 400
const ROUND_MS = 5

async function remove({ version, kinds, folder }: CgroupParent): Promise<Released> {
  const { events } = FILES[version]
  let met = NOTHING
  for (let round = 0; ; round++) {
    const count = async (kind: LimitKind) => kinds.includes(kind) && (await countOf(folder, events[kind])) > 0
    met = { outOfMemory: await count('memory'), outOfPids: await count('pids') }
    try {
      await rmdir(folder)
      return met
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return met
      if (codeOf(error) !== 'EBUSY' || round === ROUNDS) throw error
    }
    // no process outlives its group
    await killAll(folder)
    await sleep(ROUND_MS)
  }
}

async function killAll(folder: string): Promise<void> {
  const listed = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '')
  for (const pid of listed.split('\n').filter(Boolean).map(Number)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // the process has ended
    }
  }
}

async function countOf(folder: string, [file, word]: readonly [string, string]): Promise<number> {
  const text = await readFile(join(folder, file), 'utf8').catch(() => '')
  return Number(new RegExp(`^${word} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

const OLD_MS = 60_000

/** Removes groups of killed hosts. Their processes have ended too, except in a sandbox that was just starting. */
async function clearUp({ folder }: CgroupParent): Promise<void> {
  const names = (await readdir(folder)).filter(name => /^svc-\d+-[0-9a-f-]{36}$/.test(name))
  for (const name of names) {
    const made = await stat(join(folder, name)).catch(() => undefined)
    const isOld = made !== undefined && Date.now() - made.ctimeMs > OLD_MS
    if (!isOld || isRunning(Number(name.split('-')[1]))) continue
    await killAll(join(folder, name))
    await rmdir(join(folder, name)).catch(() => {})
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** Candidate folders of one cgroup hierarchy: this process's group first, then its ancestors. */
interface Hierarchy {
  readonly version: 1 | 2
  /** Version 1 has one hierarchy for each kind. */
  readonly kinds: readonly LimitKind[]
  readonly folders: readonly string[]
}

const KINDS: readonly LimitKind[] = ['memory', 'pids']

/** The cgroup hierarchies that this process sees. */
async function hierarchies(): Promise<Hierarchy[]> {
  const [mounts, own] = await Promise.all(['/proc/self/mountinfo', '/proc/self/cgroup'].map(read))
  const groups = own!.split('\n').map(line => /^\d+:([^:]*):(.*)$/.exec(line))
  return mounts!.split('\n').flatMap(line => {
    const [, root, at, type, options] = /^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(line) ?? []
    if (root === undefined || at === undefined) return []
    const words = options!.split(',')
    const version = type === 'cgroup2' ? 2 : 1
    const kinds = version === 2 ? KINDS : KINDS.filter(kind => words.includes(kind))
    const group = groups.find(item => item && (version === 2 ? item[1] === '' : item[1]!.split(',').includes(kinds[0] ?? '')))
    return group && kinds.length > 0 ? [{ version, kinds, folders: foldersOf(at, root, group[2]!) }] : []
  })
}

/** A container sees only a part of the hierarchy: its `root`. */
function foldersOf(at: string, root: string, group: string): string[] {
  const own = isWithin(group, root) ? join(at, relative(root, group)) : at
  const folders = [own]
  while (folders.at(-1) !== at) folders.push(dirname(folders.at(-1)!))
  return folders
}

const read = (file: string) => readFile(file, 'utf8').catch(() => '')
