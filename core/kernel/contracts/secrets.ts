import { defineService, type CallContext } from '@svc/core'

/** A secret as a plugin reads it. */
export interface Secret {
  /** The text, at most 65,536 bytes of UTF-8. */
  readonly value: string
  /** Differs after each change of the value. It reveals nothing of the value. */
  readonly version: string
}

/** A secret as lists show it: everything except its value. Times are Unix milliseconds. */
export interface SecretInfo {
  readonly name: string
  /** `environment` and `file`: the configuration names the variable or file. `sealed`: encrypted in the store. */
  readonly source: 'environment' | 'file' | 'sealed'
  /**
   * `ready`, or why it cannot be read: the variable or file is missing, there is no key, or another key sealed it or the record
   * was changed.
   */
  readonly state: 'ready' | 'missing' | 'no_key' | 'unreadable'
  /** When it was created. Absent for a variable. */
  readonly createdAt?: number
  /** When its value was last changed. Absent for a variable. */
  readonly changedAt?: number
  /** Identifies the key that sealed it. */
  readonly keyId?: string
}

/**
 * Keeps secrets by name: `[A-Za-z][A-Za-z0-9_-]*`, at most 64 characters. A plugin reads the secrets that its permission
 * `secrets` names and no others; the host checks this, also for plugins in its process. The other methods need the permission
 * for the whole service, and none of them returns a value. Errors: NOT_PERMITTED, SECRET_UNKNOWN, SECRET_INVALID (a name or a
 * value), SECRET_UNREADABLE, SECRET_CONFIGURED (the configuration names its source), SECRETS_KEY_MISSING, SECRETS_KEY_INVALID.
 */
export interface Secrets {
  /** Reads a secret. Read it again for each use, so that a new value takes effect without a restart. */
  read(name: string, ctx: CallContext): Promise<Secret>
  /** Yields the version each time that the sealed value was changed or removed, from now on, until the signal aborts. */
  changes(name: string, ctx: CallContext): AsyncIterable<{ readonly version: string }>
  /** The secrets by name, without values. */
  list(ctx: CallContext): Promise<readonly SecretInfo[]>
  /** Seals a value and stores it. All servers that share the store use it from now on. */
  set(name: string, value: string, ctx: CallContext): Promise<SecretInfo>
  /** Removes a sealed secret. */
  remove(name: string, ctx: CallContext): Promise<void>
  /** Seals all secrets again with the current key. Earlier keys are not needed afterwards. Returns the number of changed records. */
  reseal(ctx: CallContext): Promise<{ readonly resealed: number; readonly keyId: string }>
}

export const Secrets = defineService<Secrets>('secrets', {
  api: 1,
  methods: { read: 'call', changes: 'stream', list: 'call', set: 'call', remove: 'call', reseal: 'call' },
  items: { permission: 'secrets', methods: ['read', 'changes'] },
  resolves: { scheme: 'secret', method: 'read' },
})
