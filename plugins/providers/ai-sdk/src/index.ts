import { findPackageJSON } from 'node:module'
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { definePlugin, importFrom, packagesAround, schema, svcHome } from '@svc/core'
import { ProtectedPaths, Providers } from '@svc/core/contracts'
import { type AiSdkConfig, CONFIG } from './config.ts'

export default definePlugin({
  instances: 'providers',
  type: 'ai-sdk',
  config: schema<AiSdkConfig>(CONFIG),
  // The work is imported by those who have such an entry: the others pay for nothing.
  async check(config, name = 'ai-sdk') {
    const { checkConfig } = await import('./open.ts')
    return checkConfig(name, config, packagePlaces())
  },
  async setup({ instance: name = 'ai-sdk', config, log, signal, ...scope }) {
    const { openProvider } = await import('./open.ts')
    const opened = await openProvider({ name, config, log, signal, packages: { places: packagePlaces(), importFrom } })
    scope.defer(opened.close)
    scope.add(Providers, name, opened.provider)
    if (config.package !== undefined)
      scope.add(ProtectedPaths, name, { paths: packageFolders(config.package), owner: 'the packages that svc imports' })
  },
})

/** Where packages are looked up: from this folder upward, in the svc home, among what was installed into it, and beside svc itself. */
const packagePlaces = (): readonly string[] => {
  const home = svcHome()
  return [...[process.cwd(), home, join(home, 'plugins')].map(folder => pathToFileURL(folder + sep).href), import.meta.url]
}

/** The folders of packages that decide what a package of the configuration is: the one it lies in, and the one that is looked into first. */
function packageFolders(name: string): string[] {
  const found = packagePlaces().flatMap(place => packagesAround(manifestAt(name, place) ?? '') ?? [])
  return [...new Set([join(process.cwd(), 'node_modules'), ...found])]
}

function manifestAt(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}
