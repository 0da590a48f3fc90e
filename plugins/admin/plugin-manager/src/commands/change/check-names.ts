import { existsSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type PluginEntry, readManifest } from '@svc/core'
import type { StagedChange } from '../../set.ts'
import { findSettings, here, OURS } from '@svc/cli/program'
import { namesIn } from '../author/lint-taken.ts'
import { nameTaken } from './errors.ts'

/** Throws NAME_TAKEN where what a plugin that comes declares is another's by both manifests: that is known before anything of it is put together. */
export async function checkNames({ before, candidates, removed }: StagedChange, config?: string): Promise<void> {
  const going = new Set([...candidates, ...removed].map(one => one.name))
  const installed = { ...before, plugins: before.plugins.filter(one => !going.has(one.name)) }
  const { plugins } = await findSettings(config === undefined ? {} : { config }, { ...here(), installed })
  const taken = await namesOf(plugins)
  const isOff = (name: string) => before.plugins.some(one => one.name === name && !one.enabled)
  for (const { name: plugin, manifest } of candidates.filter(one => !isOff(one.name)))
    for (const [slot, name] of namesIn(manifest)) {
      const by = taken.get(`${slot} ${name}`)
      if (by !== undefined) throw nameTaken(plugin, slot, name, by)
      taken.set(`${slot} ${name}`, plugin)
    }
}

/** `tools read_file` → who, by the manifests of what came with svc and of what is installed: of others a start tells. */
async function namesOf(entries: readonly PluginEntry[]): Promise<Map<string, string>> {
  const files = entries.map(({ use }) => (typeof use === 'string' ? fileOf(use) : undefined)).filter(file => file !== undefined)
  const infos = await Promise.all(files.filter(existsSync).map(readManifest))
  return new Map(infos.flatMap(({ name: by, manifest }) => namesIn(manifest).map(([slot, name]) => [`${slot} ${name}`, by])))
}

function fileOf(use: string): string | undefined {
  if (use.startsWith('file:')) return fileURLToPath(new URL('package.json', use))
  try {
    return use.startsWith('@svc/') ? findPackageJSON(use, OURS) : undefined
  } catch {
    return undefined
  }
}
