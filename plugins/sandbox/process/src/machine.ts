import { access, constants } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import type { SandboxAbility } from '@svc/core/contracts'
import { type Attempt, attempt } from './attempt.ts'
import { type Bubblewrap, lineOf, systemWords, type View } from './bubblewrap.ts'
import { cgroupHolder } from './cgroups.ts'
import type { Holder, Kind } from './holding.ts'
import { hintOf } from './hint.ts'
import { rlimitHolder } from './rlimit.ts'
import { systemdHolder } from './systemd.ts'

/** What this machine can hold, and by what. */
export interface Machine {
  readonly ability: SandboxAbility
  readonly bwrap?: Bubblewrap
  readonly memory?: Holder
  readonly pids?: Holder
}

const EMPTY: View = {
  read: [],
  write: [],
  protection: { read: [], anchors: [], absent: [] },
  links: [],
  hidden: [],
  network: false,
  cwd: '/',
  tmpBytes: 1_048_576,
  unset: [],
  set: {},
}

/** Finds out what this machine can hold, by doing it. */
export async function lookAtMachine(): Promise<Machine> {
  if (process.platform !== 'linux')
    return lost(`there is no process sandbox on ${process.platform}`, 'run svc on Linux, or in a Linux container')
  const file = await findBubblewrap()
  if (file === undefined)
    return lost('bubblewrap is not installed', 'install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap)')
  const [{ out }, system] = await Promise.all([attempt(file, ['--version']), systemWords()])
  const version = out.replace(/^bubblewrap /, '') || 'unknown'
  const bwrap = { file, version, ...system }
  const modern = { ...bwrap, isModern: true }
  const first = await tryOut(modern)
  if (first.worked) return withHolders(modern)
  const plain = { ...bwrap, isModern: false }
  const second = await tryOut(plain)
  if (second.worked) return withHolders(plain)
  return lost(`bubblewrap may not make its namespaces (${second.why})`, await hintOf(), version)
}

const tryOut = (bwrap: Bubblewrap): Promise<Attempt> => {
  const [file, ...args] = lineOf(bwrap, EMPTY)
  return attempt(file!, [...args, '/bin/sh', '-c', ':'])
}

const lost = (reason: string, hint: string, bubblewrap: string | null = null): Machine => ({
  ability: { ready: false, bubblewrap, memory: null, pids: null, reason, hint },
})

async function withHolders(bwrap: Bubblewrap): Promise<Machine> {
  const holders: Holder[] = []
  const lacks = (kind: Kind) => !holders.some(holder => holder.kinds.includes(kind))
  // Without sizes a folder in memory would be memory that no limit of a process counts.
  const single = () => (bwrap.isModern ? rlimitHolder(lineOf(bwrap, EMPTY)) : Promise.resolve(undefined))
  for (const find of [() => cgroupHolder(2), () => cgroupHolder(1), systemdHolder, single]) {
    if (!lacks('memory') && !lacks('pids')) break
    const found = await find()
    if (found) holders.push(found)
  }
  const of = (kind: Kind) => holders.find(holder => holder.kinds.includes(kind))
  const [memory, pids] = [of('memory'), of('pids')]
  return {
    ability: {
      ready: true,
      bubblewrap: bwrap.version,
      memory: memory?.name ?? null,
      pids: pids?.name ?? null,
      ...missing(memory, pids),
    },
    bwrap,
    ...(memory && { memory }),
    ...(pids && { pids }),
  }
}

function missing(memory: Holder | undefined, pids: Holder | undefined): Pick<SandboxAbility, 'reason' | 'hint'> {
  const kinds = [memory ? [] : ['memory'], pids ? [] : ['processes']].flat()
  if (kinds.length === 0) return {}
  return {
    reason: `a limit of ${kinds.join(' and of ')} cannot be held`,
    hint: 'let svc make control groups: under systemd "Delegate=memory pids" with "DelegateSubgroup=main", in a container a writable /sys/fs/cgroup',
  }
}

async function findBubblewrap(): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const file = join(folder, 'bwrap')
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false
    )
    if (isAbsolute(folder) && isThere) return file
  }
  return undefined
}
