import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { codeOf, messageOf } from '@svc/core'
import { type Finding, ok, warn } from './finding.ts'

const run = promisify(execFile)
const NAME = 'sandbox'
const LOST = 'what needs the process sandbox (shell commands, stdio servers, plugins of strangers) will be refused'
const TRIAL_MS = 5_000
const TRIAL = ['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true']

/** Whether bubblewrap is there and may make namespaces: known by doing it. Never a failure, for the server runs without. */
export async function sandboxFinding(platform: string = process.platform): Promise<Finding> {
  if (platform !== 'linux')
    return warn(NAME, `there is no process sandbox on ${platform}: ${LOST}`, 'run svc on Linux, or in a Linux container')
  try {
    const { stdout } = await run('bwrap', ['--version'], { timeout: TRIAL_MS })
    await run('bwrap', TRIAL, { timeout: TRIAL_MS })
    return ok(NAME, `${stdout.trim()} works`)
  } catch (error) {
    if (codeOf(error) === 'ENOENT')
      return warn(
        NAME,
        `bubblewrap is not installed: ${LOST}`,
        'install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap)'
      )
    const { stderr } = Object(error) as { stderr?: string }
    return warn(NAME, `bubblewrap may not make its namespaces (${(stderr ?? messageOf(error)).trim()}): ${LOST}`, await mend())
  }
}

/** Who forbids it, as far as the kernel says. */
async function mend(): Promise<string> {
  const says = async (file: string) => (await readFile(`/proc/sys/${file}`, 'utf8').catch(() => '')).trim()
  if ((await says('user/max_user_namespaces')) === '0') return 'sysctl -w user.max_user_namespaces=10000'
  if ((await says('kernel/unprivileged_userns_clone')) === '0') return 'sysctl -w kernel.unprivileged_userns_clone=1'
  if ((await says('kernel/apparmor_restrict_unprivileged_userns')) === '1')
    return 'allow bwrap user namespaces in an AppArmor profile, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'
  return 'in a container, start it with what docs/operations.md says of bubblewrap (seccomp and /proc)'
}
