import { access, constants, readFile } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import type { SandboxAbility } from '@svc/core/contracts'
import { type Bubblewrap, lineOf, systemWords, type ProcessView } from './bubblewrap.ts'
import { cgroupHolder } from './cgroups.ts'
import {
  type TrialResult,
  attempt,
  FREE,
  type LimitMechanism,
  type LimitKind,
  type LimitValues,
  type Hold,
  NOTHING,
} from './limits.ts'

/** The limits that this machine can enforce, and the mechanism of each. */
export interface Machine {
  readonly ability: SandboxAbility
  readonly bwrap?: Bubblewrap
  readonly memory?: LimitMechanism
  readonly pids?: LimitMechanism
}

const EMPTY: ProcessView = {
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

/** Finds out which limits this machine can enforce, by trying each. */
export async function lookAtMachine(): Promise<Machine> {
  if (process.platform !== 'linux')
    return lost(`there is no process sandbox on ${process.platform}`, 'Run svc on Linux, or in a Linux container')
  const file = await findBubblewrap()
  if (file === undefined)
    return lost('bubblewrap is not installed', 'Install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap)')
  const [{ out }, system] = await Promise.all([attempt(file, ['--version']), systemWords()])
  const version = out.replace(/^bubblewrap /, '') || 'unknown'
  const bwrap = { file, version, ...system }
  const modern = { ...bwrap, isModern: true }
  const first = await tryOut(modern)
  if (first.worked) return withHolders(modern)
  const plain = { ...bwrap, isModern: false }
  const second = await tryOut(plain)
  if (second.worked) return withHolders(plain)
  return lost(`bubblewrap cannot create its namespaces (${second.why})`, await hintOf(), version)
}

const tryOut = (bwrap: Bubblewrap): Promise<TrialResult> => {
  const [file, ...args] = lineOf(bwrap, EMPTY)
  return attempt(file!, [...args, '/bin/sh', '-c', ':'])
}

const lost = (reason: string, hint: string, bubblewrap: string | null = null): Machine => ({
  ability: { ready: false, bubblewrap, memory: null, pids: null, reason, hint },
})

async function withHolders(bwrap: Bubblewrap): Promise<Machine> {
  const holders: LimitMechanism[] = []
  const lacks = (kind: LimitKind) => !holders.some(holder => holder.kinds.includes(kind))
  // without sizes, folders in memory would not count towards the limit of a process
  const single = () => (bwrap.isModern ? rlimitHolder(lineOf(bwrap, EMPTY)) : Promise.resolve(undefined))
  for (const find of [() => cgroupHolder(2), () => cgroupHolder(1), systemdHolder, single]) {
    if (!lacks('memory') && !lacks('pids')) break
    const found = await find()
    if (found) holders.push(found)
  }
  const of = (kind: LimitKind) => holders.find(holder => holder.kinds.includes(kind))
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

function missing(memory: LimitMechanism | undefined, pids: LimitMechanism | undefined): Pick<SandboxAbility, 'reason' | 'hint'> {
  const kinds = [memory ? [] : ['memory'], pids ? [] : ['processes']].flat()
  if (kinds.length === 0) return {}
  return {
    reason: `it cannot enforce a limit of ${kinds.join(' and of ')}`,
    hint: 'Let svc make control groups. Under systemd: "Delegate=memory pids" with "DelegateSubgroup=main". In a container: a writable /sys/fs/cgroup',
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

const TABLE = [
  { file: 'user/max_user_namespaces', says: '0', hint: 'Run: sysctl -w user.max_user_namespaces=10000' },
  { file: 'kernel/unprivileged_userns_clone', says: '0', hint: 'Run: sysctl -w kernel.unprivileged_userns_clone=1' },
  {
    file: 'kernel/apparmor_restrict_unprivileged_userns',
    says: '1',
    hint: 'Allow bwrap user namespaces in an AppArmor profile, or run: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0',
  },
] as const

/** Finds the kernel setting that forbids user namespaces. */
async function hintOf(): Promise<string> {
  for (const { file, says, hint } of TABLE) {
    const said = await readFile(`/proc/sys/${file}`, 'utf8').catch(() => '')
    if (said.trim() === says) return hint
  }
  return 'In a container, set the options for bubblewrap (seccomp and /proc) of docs/guides/deploy-in-a-container.md'
}

const PRLIMIT = '/usr/bin/prlimit'
/** The smallest `--data` that Node 24 starts with (measured). */
const NODE_BYTES = 600_000_000
/** The first process of the sandbox counts as well. */
const OWN = 1

const MEMORY: LimitValues = { memory: 16_777_216 }
/** Needs four times as much. */
const GREEDY = 'head -c 67108864 /dev/zero | tail -c 67108864 > /dev/null'
const PIDS: LimitValues = { pids: 2 }
const FORKING = 'sleep 1 & sleep 1 & sleep 1 & sleep 1 & wait'

const words = ({ memory, pids }: LimitValues, isNode: boolean): string[] => [
  PRLIMIT,
  ...(memory === undefined ? [] : [`--data=${memory + (isNode ? NODE_BYTES : 0)}`]),
  ...(pids === undefined ? [] : [`--nproc=${pids + OWN}`]),
  '--',
]

/**
 * Limits for each process by itself. They are weaker than those of a group: twice the processes have twice the memory. The kernel counts the processes of a
 * user in a user namespace, and none of root. So the trial runs in the sandbox, whose command line is `inside`.
 */
async function rlimitHolder(inside: readonly string[]): Promise<LimitMechanism | undefined> {
  const [bwrap, ...args] = inside
  const works = async (limits: LimitValues, script: string) =>
    (await attempt(bwrap!, [...args, ...words(limits, false), '/bin/sh', '-c', script])).worked
  const holds = async (limits: LimitValues, greedy: string) => (await works(limits, ':')) && !(await works(limits, greedy))
  const kinds: LimitKind[] = []
  if (await holds(MEMORY, GREEDY)) kinds.push('memory')
  if (await holds(PIDS, FORKING)) kinds.push('pids')
  if (kinds.length === 0) return undefined
  return { name: 'rlimit', kinds, hold: async (limits, { isNode }) => ({ ...FREE, within: words(limits, await isNode()) }) }
}

/** Processes of bubblewrap itself, which count too. */
const BWRAP_PROCESSES = 2
const SYSTEMD_RUN = ['/usr/bin/systemd-run', '--user', '--scope', '--quiet', '--collect']
const SCOPE_TRIAL: LimitValues = { memory: 67_108_864, pids: 64 }
/** A script that prints the limits of its scope: systemd silently ignores a limit that it cannot enforce. */
const PRINT_LIMITS = 'cd "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)" && cat memory.max pids.max'

/** Uses scopes of the user's systemd, if it runs. */
async function systemdHolder(): Promise<LimitMechanism | undefined> {
  const env = reach()
  if (env === undefined) return undefined
  const trial = holdInScope(SCOPE_TRIAL, env)
  const { worked, out } = await attempt(trial.before[0]!, [...trial.before.slice(1), '/bin/sh', '-c', PRINT_LIMITS], env)
  const holds = worked && out === `${SCOPE_TRIAL.memory}\n${SCOPE_TRIAL.pids! + BWRAP_PROCESSES}`
  return holds ? { name: 'systemd', kinds: ['memory', 'pids'], hold: async limits => holdInScope(limits, env) } : undefined
}

/** The variables that systemd-run needs to reach the user's systemd. */
function reach(): Record<string, string> | undefined {
  const { XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS } = process.env
  if (XDG_RUNTIME_DIR === undefined) return undefined
  return { XDG_RUNTIME_DIR, ...(DBUS_SESSION_BUS_ADDRESS === undefined ? {} : { DBUS_SESSION_BUS_ADDRESS }) }
}

function holdInScope({ memory, pids }: LimitValues, env: Record<string, string>): Hold {
  const set = (...words: string[]) => words.flatMap(word => ['-p', word])
  return {
    before: [
      ...SYSTEMD_RUN,
      ...(memory === undefined ? [] : set(`MemoryMax=${memory}`, 'MemorySwapMax=0')),
      ...(pids === undefined ? [] : set(`TasksMax=${pids + BWRAP_PROCESSES}`)),
      '--',
    ],
    within: [],
    env,
    release: async () => NOTHING,
  }
}
