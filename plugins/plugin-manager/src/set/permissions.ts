import type { PermissionChange } from './change-types.ts'
import type { Permissions } from './lock-types.ts'

const wordsOf = (permissions: Permissions): string[] =>
  Object.entries(permissions).flatMap(([kind, names]) => (names as readonly string[]).map(name => `${kind} ${name}`))

export function permissionChange(before: Permissions, after: Permissions): PermissionChange {
  const [had, has] = [new Set(wordsOf(before)), new Set(wordsOf(after))]
  return { added: [...has.difference(had)], removed: [...had.difference(has)] }
}
