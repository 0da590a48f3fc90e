import { attempt } from './attempt.ts'
import { type Hold, type Holder, type Limits, NOTHING } from './holding.ts'

const RUN = ['/usr/bin/systemd-run', '--user', '--scope', '--quiet', '--collect']
/** Processes of bubblewrap itself, which count too. */
const OWN = 2
const TRIAL: Limits = { memory: 67_108_864, pids: 64 }
/** A script that prints the limits of its scope: systemd silently ignores a limit that it cannot enforce. */
const LOOK = 'cd "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)" && cat memory.max pids.max'

/** Uses scopes of the user's systemd, if it runs. */
export async function systemdHolder(): Promise<Holder | undefined> {
  const env = reach()
  if (env === undefined) return undefined
  const trial = hold(TRIAL, env)
  const { worked, out } = await attempt(trial.before[0]!, [...trial.before.slice(1), '/bin/sh', '-c', LOOK], env)
  const holds = worked && out === `${TRIAL.memory}\n${TRIAL.pids! + OWN}`
  return holds ? { name: 'systemd', kinds: ['memory', 'pids'], hold: async limits => hold(limits, env) } : undefined
}

/** The variables that systemd-run needs to reach the user's systemd. */
function reach(): Record<string, string> | undefined {
  const { XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS } = process.env
  if (XDG_RUNTIME_DIR === undefined) return undefined
  return { XDG_RUNTIME_DIR, ...(DBUS_SESSION_BUS_ADDRESS === undefined ? {} : { DBUS_SESSION_BUS_ADDRESS }) }
}

function hold({ memory, pids }: Limits, env: Record<string, string>): Hold {
  const set = (...words: string[]) => words.flatMap(word => ['-p', word])
  return {
    before: [
      ...RUN,
      ...(memory === undefined ? [] : set(`MemoryMax=${memory}`, 'MemorySwapMax=0')),
      ...(pids === undefined ? [] : set(`TasksMax=${pids + OWN}`)),
      '--',
    ],
    within: [],
    env,
    release: async () => NOTHING,
  }
}
