import { type CallContext, defineService, type JsonSchema } from '@svc/core'
import type { Json } from './store.ts'

/** A problem of a configuration, or of a start with it. No text contains a path of the machine or a secret. */
export interface ConfigProblem {
  readonly code: string
  readonly message: string
  /** The key with dots, such as `server.port`, if it concerns one. */
  readonly path?: string
  /** Name and line of the file, or the variable. */
  readonly where?: string
  readonly hint?: string
  readonly plugin?: string
}

/** The result of a reload. */
export interface ReloadReport {
  /** Why the new workers failed to start; the old ones keep serving. Empty: the new ones serve. */
  readonly problems: readonly ConfigProblem[]
  readonly workers: readonly {
    readonly name: string
    readonly state: 'starting' | 'ready' | 'draining'
    readonly generation: number
  }[]
}

/** Controls the server that this process is a worker of. A host without a supervisor has no such service. */
export interface ServerControl {
  /**
   * Starts workers from the current files and drains the old ones, as `svc reload` does. Resolves when the new ones serve or have
   * failed. This worker then drains: calls that are in progress end normally.
   */
  reload(ctx: CallContext): Promise<ReloadReport>
}

export const ServerControl = defineService<ServerControl>('server_control', { api: 1, methods: { reload: 'call' } })

/** Where a value of the configuration comes from. */
export interface ConfigSource {
  readonly kind: 'default' | 'installed' | 'home' | 'file' | 'environment' | 'flags'
  /**
   * Of a file: its path from the svc home or the working folder, or else its name. Of the environment: the variable, if one sets
   * exactly this key.
   */
  readonly name?: string
}

/** A value in effect. */
export interface ConfigValue {
  /** A key can contain dots. */
  readonly keys: readonly string[]
  /** A secret is `(secret)`. */
  readonly value: Json
  readonly source: ConfigSource
  /** No running plugin uses it. */
  readonly unused: boolean
  /** Why clients cannot change it. Absent: they can. */
  readonly local?: string
  /** Whether the file of the svc home sets it, even if a source of higher priority overrides that. */
  readonly inFile: boolean
}

/** The configuration that the server runs with. */
export interface ConfigState {
  readonly values: readonly ConfigValue[]
  readonly plugins: readonly { readonly name: string; readonly source: ConfigSource }[]
  readonly file: ConfigFile
}

/** The configuration file of the svc home, which clients can change. */
export interface ConfigFile {
  /** Differs after each change of the file. */
  readonly version: string
  /** Whether the file has changes that the server does not run with: they take effect with the next reload. */
  readonly isPending: boolean
  /** Why clients cannot change it, such as that it is code. */
  readonly locked?: string
}

/**
 * A draft of the configuration file of the svc home: changes of some keys, as a JSON Merge Patch (RFC 7396: null removes a key), or
 * the whole text of the file as YAML.
 */
export type ConfigDraft = { readonly values: { readonly [key: string]: Json | undefined } } | { readonly text: string }

/** What was found in a draft. */
export interface ConfigCheck {
  readonly problems: readonly ConfigProblem[]
  /** What was not checked, in words. */
  readonly unchecked: readonly string[]
}

/** The configuration file after a change. */
export interface ConfigChange {
  readonly version: string
  /** The changed keys with dots, and their values; null for none. A secret is `(secret)`. */
  readonly changed: readonly { readonly key: string; readonly before: Json; readonly after: Json }[]
  /** What was not checked before the change, in words. */
  readonly unchecked: readonly string[]
}

/**
 * The configuration of a server of `svc serve`. Keys that name code, commands, folders, variables, plugins or credentials cannot
 * be changed here: only a person on the machine of the server can. Keys that a source of higher priority sets can only be removed. Errors: CONFIG_DRAFT_INVALID (`details: {problems}`, a list of
 * `ConfigProblem`), CONFIG_LOCKED (the file cannot be changed here), PRECONDITION_FAILED (`details: {version}`).
 */
export interface Configuration {
  /** The configuration that the workers run with. */
  read(ctx: CallContext): Promise<ConfigState>
  /** The JSON Schema (draft 07) of everything that the loaded plugins accept. */
  schema(ctx: CallContext): Promise<JsonSchema>
  /**
   * All problems of a draft together with the other sources, as `svc config check` finds them: plugins check it, too. Executes and
   * imports nothing of it, and stores nothing.
   */
  check(draft: ConfigDraft, ctx: CallContext): Promise<ConfigCheck>
  /**
   * Changes keys of the file if it has no problems then. Comments and other keys stay. `ifVersion`: the expected version. It takes
   * effect with the next reload.
   */
  change(
    values: { readonly [key: string]: Json | undefined },
    ifVersion: string | undefined,
    ctx: CallContext
  ): Promise<ConfigChange>
}

export const Configuration = defineService<Configuration>('configuration', {
  api: 1,
  methods: { read: 'call', schema: 'call', check: 'call', change: 'call' },
})
