import { readFile } from 'node:fs/promises'

const TABLE = [
  { file: 'user/max_user_namespaces', says: '0', hint: 'sysctl -w user.max_user_namespaces=10000' },
  { file: 'kernel/unprivileged_userns_clone', says: '0', hint: 'sysctl -w kernel.unprivileged_userns_clone=1' },
  {
    file: 'kernel/apparmor_restrict_unprivileged_userns',
    says: '1',
    hint: 'allow bwrap user namespaces in an AppArmor profile, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0',
  },
] as const

/** Who forbids the namespaces, as far as the kernel says. */
export async function hintOf(): Promise<string> {
  for (const { file, says, hint } of TABLE) {
    const said = await readFile(`/proc/sys/${file}`, 'utf8').catch(() => '')
    if (said.trim() === says) return hint
  }
  return 'in a container, start it with what docs/guides/deploy-in-a-container.md says of bubblewrap (seccomp and /proc)'
}
