import { defineSlot } from '@svc/core'

/**
 * Paths that one owner protects: configuration, definitions, code that svc imports. File tools, git tools, sandboxed commands and sandboxed tool servers
 * can read them where their own rules allow it, and can neither write, replace, rename, link nor delete them, nor anything in them. All data.
 */
export interface ProtectedPaths {
  /** Absolute paths of files and folders. One that does not exist yet cannot be created. */
  readonly paths: readonly string[]
  /** What they are, as the end of the sentence "it belongs to …": `the configuration of svc`. */
  readonly owner: string
  /** What the operator can do about it, where there is something, in the imperative: `set workflows.writable_by_tools to true`. */
  readonly hint?: string
}

/** Protected paths by the name of what they belong to: `configuration`, `workflows`. */
export const ProtectedPaths = defineSlot<ProtectedPaths>('protected_paths', { api: 1, methods: {} })
