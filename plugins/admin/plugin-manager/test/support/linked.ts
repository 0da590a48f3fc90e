import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { LockedPlugin } from '../../src/set.ts'
import { configureFew, TIDES, tidesFolder, type Tides } from '../../../../../test/support/tides.ts'
import { makeWorkspace, type Workspace } from '../../../../../cli/test/support/svc.ts'

/** A place of few plugins where others are linked. */
export async function linkedPlace(...all: Linked[]): Promise<Workspace> {
  const workspace = await makeWorkspace()
  await configureFew(workspace.folder)
  await link(workspace, all)
  return workspace
}

type Linked = Tides & { readonly enabled?: boolean }

/** Links plugins, as `svc plugins link --trust` leaves it. */
export async function link(workspace: Workspace, all: readonly Linked[]): Promise<void> {
  const plugins: LockedPlugin[] = []
  for (const { enabled = true, ...tides } of all) {
    const origin = { kind: 'link' as const, spec: await tidesFolder(workspace.folder, tides) }
    const permissions = (tides.svc as { permissions?: object } | undefined)?.permissions ?? {}
    const whole = { integrity: '', files: '', scripts: false, trusted: true, isolation: 'in-process' as const }
    plugins.push({ ...whole, name: tides.name ?? TIDES, version: tides.version, origin, enabled, permissions })
  }
  await mkdir(workspace.home, { recursive: true })
  const lock = { version: 1, set: '', plugins, dependencies: { files: '', stamp: '' } }
  await writeFile(join(workspace.home, 'svc-plugins.lock'), JSON.stringify(lock))
}
