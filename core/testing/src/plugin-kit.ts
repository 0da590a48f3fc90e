import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { asSvcError, formatError } from '@svc/core'
import { undeclaredImports } from '@svc/core/config'
import { consolePageCases } from './console-page-kit.ts'
import { type KitCase, outcome } from './kit-case.ts'
import { lifeCases, packageCases, STARTS } from './plugin-manifest.ts'
import { openPlugin, type PluginHost } from './plugin-host.ts'
import { openPackage, type PluginPackage, type PluginKitOptions } from './plugin-package.ts'
import { itemCases } from './plugin-items.ts'

/**
 * Cases for every plugin, whatever its kind: `for (const one of await pluginKit(new URL('../..', import.meta.url), samples))
 * it(one.title, one.run)`. It checks the package in this folder, starts it alone in a strict host, compares it with its
 * manifest, calls its contributions with generated data, and runs the kit of each contribution. A plugin that does not load or
 * start yields one failing case with the reason.
 */
export async function pluginKit(folder: URL | string, options: PluginKitOptions = {}): Promise<KitCase[]> {
  let found: PluginPackage
  try {
    found = await openPackage(folder, options.sandbox)
  } catch (error) {
    return [failing('has a manifest that svc takes, and a module that is a plugin', error, importText(folder))]
  }
  const cases = packageCases(found, options)
  const lives = lifeCases(found, options)
  const { value: started, error } = await outcome(openPlugin(found, options))
  // Each of the others would wait as long for the same error.
  if (!started) return [failing(STARTS, error, notRun(lives.length - 1)), ...cases]
  return [...lives, ...cases, ...consolePageCases(found.info), ...(await casesOfItems(found, options, started))]
}

/** A module that does not load often imports a package that is installed only beside the plugin. */
function importText(folder: URL | string): string {
  const path = folder instanceof URL || folder.startsWith('file:') ? fileURLToPath(folder) : folder
  try {
    return undeclaredImports(path)
      .map(text => `\n  ${text}`)
      .join('')
  } catch {
    return '' // the error itself says what is wrong with the folder
  }
}

const notRun = (count: number) => `\n  ${count} cases that start it, and those of what it adds, were not run because of that`

async function casesOfItems(found: PluginPackage, options: PluginKitOptions, { host, close }: PluginHost): Promise<KitCase[]> {
  try {
    return itemCases(found, options, host)
  } catch (error) {
    return [failing('adds items that can be called as their contract says', error)]
  } finally {
    // A separate case reports errors of closing.
    await close().catch(() => undefined)
  }
}

const failing = (title: string, error: unknown, more = ''): KitCase => ({
  title,
  run: async () => assert.fail(`${formatError(asSvcError(error, 'FAILED'))}${more}`),
})
