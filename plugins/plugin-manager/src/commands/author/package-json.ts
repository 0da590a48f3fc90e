import { COMMANDS_MODULE, type Manifest } from '@svc/core'
import type { PluginWords } from './names.ts'

export type Language = 'ts' | 'js'

const NODE_TYPES = '^24.0.0'
const TYPESCRIPT = '^7.0.0'

interface Parts {
  readonly words: PluginWords
  readonly language: Language
  readonly manifest: Omit<Manifest, 'api'>
  readonly api: number
  /** The version of @svc/core that it is written for. */
  readonly core: string
}

/** The package.json of a new plugin. In TypeScript its own source is found under the condition `development`, all others find what was built. */
export function packageJson({ words, language, manifest, api, core }: Parts): object {
  const isData = manifest.runtime !== undefined
  const isStore = manifest.kind === 'store'
  const isBuilt = language === 'ts' && !isData
  const brought = {
    ...(manifest.contributes?.commands === undefined ? {} : { '@svc/cli': `^${core}` }),
    ...(isStore ? { '@svc/space': `^${core}` } : {}),
  }
  return {
    name: words.package,
    version: '0.1.0',
    description: `A plugin for svc (${manifest.kind}): ${words.kebab}`,
    license: 'MIT',
    keywords: ['svc-plugin'],
    type: 'module',
    engines: { node: '>=24' },
    ...(isData ? { main: 'vertical.yaml' } : { exports: exportsOf(manifest, isBuilt) }),
    files: [isData ? 'vertical.yaml' : isBuilt ? 'dist' : 'src'],
    scripts: { ...(isBuilt ? { build: 'tsc -p tsconfig.build.json', prepack: 'npm run build' } : {}), test: 'node --test' },
    peerDependencies: { '@svc/core': `^${core}`, ...brought },
    // svc brings them, as it brings the core
    ...(Object.keys(brought).length > 0 ? { peerDependenciesMeta: mapped(brought, () => ({ optional: true })) } : {}),
    devDependencies: {
      '@svc/core': `^${core}`,
      ...brought,
      ...(isData ? { '@svc/plugin-verticals': `^${core}` } : {}),
      ...(language === 'ts' ? { '@types/node': NODE_TYPES, typescript: TYPESCRIPT } : {}),
    },
    svc: { api, ...manifest },
  }
}

const mapped = <T>(entries: Readonly<Record<string, string>>, to: (value: string) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(entries).map(([key, value]) => [key, to(value)]))

function exportsOf({ contributes }: Omit<Manifest, 'api'>, isBuilt: boolean): object {
  const modules = { '.': 'index', ...(contributes?.commands === undefined ? {} : { [COMMANDS_MODULE]: 'commands' }) }
  const place = (name: string) =>
    isBuilt ? { development: `./src/${name}.ts`, types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` } : `./src/${name}.js`
  return { ...mapped(modules, place), './package.json': './package.json' }
}
