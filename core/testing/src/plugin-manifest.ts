import assert from 'node:assert/strict'
import {
  COMMANDS_MODULE,
  commandsOf,
  definePlugin,
  type JsonSchema,
  messageOf,
  type RunningHost,
  matchesPattern,
} from '@svc/core'
import { undeclaredImports } from '@svc/core/config'
import { grantedItems } from '@svc/core/internal'
import { assertPlain, atOnce, compileSchema, type KitCase, outcome, warn } from './kit-case.ts'
import { ENTRY, openPlugin, type PluginHost } from './plugin-host.ts'
import type { PluginPackage, PluginKitOptions } from './plugin-package.ts'

/** Creates cases that each run the plugin in their own host. */
const hosted =
  (found: PluginPackage, options: PluginKitOptions) =>
  (title: string, check: (run: PluginHost) => Promise<void>): KitCase => ({
    title,
    async run(this: unknown) {
      const run = await openPlugin(found, options)
      let failed = true
      try {
        await check(run)
        failed = false
      } finally {
        // The error of the case takes precedence over leftovers.
        await (failed ? run.close().catch(() => undefined) : run.close())
        warn(this, run.warnings())
      }
    },
  })

export const STARTS = 'starts with its configuration, alone and within time'

/** Cases for the package and the manifest, whether the plugin starts or not. */
export function packageCases(found: PluginPackage, options: PluginKitOptions): KitCase[] {
  const { plugin } = found
  return [
    ...(plugin ? [importCase(found)] : []),
    ...commandCases(found),
    ...(plugin?.config ? configCases(found, plugin.config.json, options) : []),
  ]
}

/** A package that is only in a folder around the plugin, such as a workspace, is missing after the installation. */
const importCase = ({ info: { folder } }: PluginPackage): KitCase => ({
  title: 'declares the packages that it imports',
  async run() {
    const words = undeclaredImports(folder)
    assert.ok(words.length === 0, words.join('\n'))
  },
})

/** Cases for the lifecycle. Each of them starts the plugin. */
export function lifeCases(found: PluginPackage, options: PluginKitOptions): KitCase[] {
  const make = hosted(found, options)
  const { info } = found
  return [
    make(STARTS, async ({ host }) => {
      assert.ok(host.report().plugins.some(plugin => plugin.name === info.name && plugin.state === 'running'))
    }),
    make('adds what its manifest declares, and nothing else', async ({ host }) => assertAdded(host, found)),
    {
      title: 'declares the variables that it reads and the hosts that it connects to during its start',
      async run() {
        const { problems, close } = await openPlugin(found, options)
        await close()
        assert.ok(problems().length === 0, problems().join('\n'))
      },
    },
    ...usesCases(found, make),
    {
      title: 'can be restarted, and leaves nothing behind',
      async run() {
        for (let times = 0; times < 2; times++) await (await openPlugin(found, options)).close()
      },
    },
    {
      title: 'undoes its setup when another plugin fails to start',
      async run() {
        const fails = {
          name: 'test:fails',
          use: definePlugin({ setup: () => Promise.reject(new Error('the kit fails the start')) }),
        }
        const { error } = await outcome(openPlugin(found, options, { more: [fails] }))
        assert.match(messageOf(error), /the kit fails the start/)
      },
    },
  ]
}

/** A plugin that can be isolated is confined to its declarations there. */
function usesCases({ info, plugin }: PluginPackage, make: ReturnType<typeof hosted>): KitCase[] {
  if (plugin === undefined || info.manifest.kind === 'command' || info.manifest.kind === 'store') return []
  const { services = [], hooks = [] } = info.manifest.permissions ?? {}
  const missing = (names: readonly string[], words: readonly string[]) =>
    names.filter(name => !words.some(word => matchesPattern(word, name)))
  return [
    make('declares the services and slots that it uses or provides, and the hooks that it joins', async ({ host }) => {
      // An isolated plugin also requires what isolates it.
      const required = Object.entries({ ...plugin.requires, ...plugin.optional }).flatMap(([key, { what, name }]) =>
        key.startsWith('~') || grantedItems(info.manifest.permissions ?? {}, what, name)?.length ? [] : [name]
      )
      const uses = plugin.provides ? [...required, plugin.provides.name] : required
      const joined = host.report().hooks.flatMap(hook => (hook.plugin === info.name ? hook.hook : []))
      const free = ['host.ready', 'host.closing', ...uses.map(name => `${name}.changed`)]
      const undeclared = {
        services: missing(
          uses.filter(name => name !== 'host'),
          services
        ),
        hooks: missing(
          joined.filter(hook => !free.includes(hook)),
          hooks
        ),
      }
      assert.deepEqual(undeclared, { services: [], hooks: [] }, 'add the missing names to "permissions" of its manifest')
    }),
  ]
}

/** A declared pattern can match no item. */
function assertAdded(host: RunningHost, { info, plugin }: PluginPackage): void {
  const mine = host.report().plugins.filter(item => item.name === info.name)
  const absent = mine.flatMap(item => Object.entries(item.absent ?? {}))
  const missing = absent.filter(([slot]) => !mine.some(item => !Object.hasOwn(item.absent ?? {}, slot)))
  assert.deepEqual(
    Object.fromEntries(missing),
    {},
    'its manifest declares what it does not add: take it out of "contributes", or give the kit a `config` with which it adds it'
  )
  const { instances } = info.manifest
  assert.ok(
    instances === undefined || (plugin?.instances === instances.section && plugin.type === instances.type),
    'its manifest has other "instances" than its code'
  )
}

function commandCases({ info, importModule }: PluginPackage): KitCase[] {
  return commandsOf(info.manifest).map(name => ({
    title: `has a command "${name}" with a class, a summary and an example`,
    async run() {
      const { COMMANDS } = await importModule(COMMANDS_MODULE)
      const id = name.replaceAll(' ', ':')
      const { run, summary, examples, flags } = Object((Object(COMMANDS) as Record<string, unknown>)[id]) as Record<
        string,
        unknown
      >
      assert.equal(typeof run, 'function', `${COMMANDS_MODULE} must export COMMANDS with a class "${id}"`)
      assertFlags(id, Object(flags) as Record<string, unknown>)
      assert.ok(typeof summary === 'string' && summary !== '', `the class "${id}" has no static summary`)
      assert.ok(Array.isArray(examples) && examples.length > 0, `the class "${id}" has no static examples`)
    },
  }))
}

/** svc handles `-c` and `--config` itself, and help shows the texts. */
function assertFlags(id: string, flags: Readonly<Record<string, unknown>>): void {
  for (const [name, flag] of Object.entries(flags)) {
    const { char, summary = '', description = '' } = Object(flag) as Record<string, unknown>
    assert.ok(name !== 'config' && char !== 'c', `the class "${id}" has a flag "${name}" with a name of svc: --config, -c`)
    assert.ok(
      typeof summary === 'string' && typeof description === 'string',
      `the class "${id}" has a flag "${name}" whose summary or description is not text`
    )
  }
}

function configCases(found: PluginPackage, json: JsonSchema, options: PluginKitOptions): KitCase[] {
  const { type, properties, additionalProperties } = Object(json) as {
    type?: unknown
    properties?: Record<string, { description?: unknown }>
    additionalProperties?: unknown
  }
  return [
    {
      title: 'has a schema of its configuration that describes each key',
      async run() {
        assertPlain(json, 'config')
        compileSchema(json, 'config')
        for (const [key, property] of Object.entries(properties ?? {}))
          assert.ok(typeof property.description === 'string' && property.description !== '', `the key ${key} has no description`)
      },
    },
    ...(type === 'object' && additionalProperties === false ? [strangeKey(found, options)] : type === 'object' ? [open] : []),
  ]
}

const open: KitCase = {
  title: 'rejects an unknown key in its configuration',
  run: async () => assert.fail('its schema accepts any key: set "additionalProperties": false'),
}

const strangeKey = (found: PluginPackage, options: PluginKitOptions): KitCase => ({
  title: 'rejects an unknown key in its configuration',
  async run() {
    const { section, instances, type } = found.plugin!
    const path = instances === undefined ? section!.split('.') : [...instances.split('.'), ENTRY]
    const inner = { ...(instances === undefined ? {} : { type }), no_such_key: 1 }
    const config = path.reduceRight<unknown>((at, key) => ({ [key]: at }), inner) as NonNullable<PluginKitOptions['config']>
    const started = outcome(openPlugin(found, { ...options, config }))
    const { value, error } = await atOnce(started, 'the end of the start')
    await value?.close()
    assert.match(messageOf(error), /no_such_key/)
  },
})
