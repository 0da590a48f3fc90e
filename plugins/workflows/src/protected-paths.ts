import { resolve } from 'node:path'
import type { ProtectedPaths } from '@svc/core/contracts'
import type { Roots } from './roots.ts'
import type { WorkflowsConfig } from './settings.ts'

/** What tools must not change. Imports the files of code, so that what these import is known before a tool can run. */
export async function protectedPathsOf(
  { code, writable_by_tools }: WorkflowsConfig,
  folders: readonly string[],
  roots: Roots
): Promise<ProtectedPaths> {
  const paths = [...(writable_by_tools ? [] : folders), ...code, ...(await roots.importAll())]
  return { paths: paths.map(path => resolve(path)), owner: 'the workflows of this server' }
}
