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
  // Imported on demand, so that a configuration without such an entry does not load it.
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

/** Locations to resolve packages from: this folder and its parents, the svc home, its plugins, and svc itself. */
const packagePlaces = (): readonly string[] => {
  const home = svcHome()
  return [...[process.cwd(), home, join(home, 'plugins')].map(folder => pathToFileURL(folder + sep).href), import.meta.url]
}

/** The package folders to protect: the folder that contains the package, and the first folder of the look-up. */
function packageFolders(name: string): string[] {
  const folders = packagePlaces().flatMap(place => packagesAround(manifestAt(name, place) ?? '') ?? [])
  return [...new Set([join(process.cwd(), 'node_modules'), ...folders])]
}

function manifestAt(name: string, place: string): string | undefined {
  try {
    return findPackageJSON(name, place)
  } catch {
    return undefined
  }
}
