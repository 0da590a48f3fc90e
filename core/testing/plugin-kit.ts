import assert from 'node:assert/strict'
import { asSvcError, formatError } from '@svc/core'
import type { KitCase } from './kit.ts'
import { manifestCases } from './plugin-manifest.ts'
import { openPlugin } from './plugin-host.ts'
import { openPackage, type PluginPackage } from './plugin-package.ts'
import type { PluginKitOptions } from './plugin-samples.ts'
import { thingCases } from './plugin-things.ts'

/**
 * What every plugin must do, whatever its kind: `for (const one of await pluginKit(new URL('..', import.meta.url), samples)) it(one.title, one.run)`.
 * Looks at the package in this folder, starts it alone in a strict host, holds it to its manifest, calls what it adds with made-up data, and then runs the kit of
 * each thing that it adds. What cannot be loaded or started answers one case, which fails and says why.
 */
export async function pluginKit(folder: URL | string, options: PluginKitOptions = {}): Promise<KitCase[]> {
  let found: PluginPackage
  try {
    found = await openPackage(folder)
  } catch (error) {
    return [failing('has a manifest that svc takes, and a module that is a plugin', error)]
  }
  const cases = manifestCases(found, options)
  try {
    const { host, close } = await openPlugin(found, options)
    const things = thingCases(found, options, host)
    await close().catch(() => undefined)
    return [...cases, ...things]
  } catch {
    // the cases of the manifest start it too, and say what is wrong
    return cases
  }
}

const failing = (title: string, error: unknown): KitCase => ({
  title,
  run: async () => assert.fail(formatError(asSvcError(error, 'FAILED'))),
})
