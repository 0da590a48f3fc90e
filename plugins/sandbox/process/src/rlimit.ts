import { attempt } from './attempt.ts'
import { FREE, type Holder, type Kind, type Limits } from './holding.ts'

const PRLIMIT = '/usr/bin/prlimit'
/** What Node needs before it runs anything: measured with Node 24 as the least `--data` that it starts with. */
const NODE_BYTES = 600_000_000
/** The first process of the sandbox counts as well. */
const OWN = 1

const MEMORY: Limits = { memory: 16_777_216 }
/** Needs four times that. */
const GREEDY = 'head -c 67108864 /dev/zero | tail -c 67108864 > /dev/null'
const PIDS: Limits = { pids: 2 }
const FORKING = 'sleep 1 & sleep 1 & sleep 1 & sleep 1 & wait'

const words = ({ memory, pids }: Limits, isNode: boolean): string[] => [
  PRLIMIT,
  ...(memory === undefined ? [] : [`--data=${memory + (isNode ? NODE_BYTES : 0)}`]),
  ...(pids === undefined ? [] : [`--nproc=${pids + OWN}`]),
  '--',
]

/**
 * Limits of each process: weaker than a group, for twice the processes have twice the memory. Of processes the kernel counts those of a user in a user
 * namespace, and none of root: so it is tried in the sandbox, whose command line is `inside`.
 */
export async function rlimitHolder(inside: readonly string[]): Promise<Holder | undefined> {
  const [bwrap, ...args] = inside
  const works = async (limits: Limits, script: string) =>
    (await attempt(bwrap!, [...args, ...words(limits, false), '/bin/sh', '-c', script])).worked
  const holds = async (limits: Limits, greedy: string) => (await works(limits, ':')) && !(await works(limits, greedy))
  const held: Kind[] = []
  if (await holds(MEMORY, GREEDY)) held.push('memory')
  if (await holds(PIDS, FORKING)) held.push('pids')
  if (held.length === 0) return undefined
  return { name: 'rlimit', kinds: held, hold: async (limits, { isNode }) => ({ ...FREE, within: words(limits, await isNode()) }) }
}
