import type { Manifest } from '@svc/core'
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
    peerDependencies: { '@svc/core': `^${core}`, ...(isStore ? { '@svc/space': `^${core}` } : {}) },
    // svc brings it, as it brings the core
    ...(isStore ? { peerDependenciesMeta: { '@svc/space': { optional: true } } } : {}),
    devDependencies: {
      '@svc/core': `^${core}`,
      ...(isStore ? { '@svc/space': `^${core}` } : {}),
      ...(isData ? { '@svc/plugin-verticals': `^${core}` } : {}),
      ...(language === 'ts' ? { '@types/node': NODE_TYPES, typescript: TYPESCRIPT } : {}),
    },
    svc: { api, ...manifest },
  }
}

function exportsOf({ contributes }: Omit<Manifest, 'api'>, isBuilt: boolean): object {
  const commands = Object.values(contributes?.commands ?? {}) as { readonly module: string }[]
  const modules = [['.', 'index'] as const, ...commands.map(({ module }) => [module, module.slice(2)] as const)]
  const place = (name: string) =>
    isBuilt ? { development: `./src/${name}.ts`, types: `./dist/${name}.d.ts`, default: `./dist/${name}.js` } : `./src/${name}.js`
  return { ...Object.fromEntries(modules.map(([key, name]) => [key, place(name)])), './package.json': './package.json' }
}
