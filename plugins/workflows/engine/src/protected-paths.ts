import { resolve } from 'node:path'
import { pathsOfCode } from '@svc/core'
import type { ProtectedPaths } from '@svc/core/contracts'
import type { Roots } from './roots.ts'
import type { WorkflowsConfig } from './settings.ts'

/** What tools must not change. What code imports is read, so that it is known before any of it runs. */
export async function protectedPathsOf(
  { code, writable_by_tools }: WorkflowsConfig,
  folders: readonly string[],
  roots: Roots
): Promise<ProtectedPaths> {
  const paths = [...(writable_by_tools ? [] : folders), ...code, ...pathsOfCode(await roots.codeFiles())]
  const hint = writable_by_tools ? {} : { hint: 'set workflows.writable_by_tools to true to let tools write definitions' }
  return { paths: paths.map(path => resolve(path)), owner: 'the workflows of this server', ...hint }
}
