import { spawnSync } from 'node:child_process'

const TRIAL = ['--unshare-user', '--unshare-pid', '--ro-bind', '/', '/', '--proc', '/proc', 'true']
let found: { readonly why: string | undefined } | undefined

/** Why this machine has no process sandbox: `undefined` where it has one. For tests that need it, which say so and are skipped. */
export function noBubblewrap(): string | undefined {
  found ??= { why: whyNot(spawnSync('bwrap', TRIAL)) }
  return found.why
}

const whyNot = ({ status, error }: ReturnType<typeof spawnSync>) =>
  status === 0 ? undefined : `bubblewrap ${error ? 'is not installed' : 'may make no namespaces'} on this machine`
