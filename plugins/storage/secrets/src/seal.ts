import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { secretUnreadable } from './errors.ts'
import type { Key } from './key.ts'

/** A sealed value as the store keeps it: AES-256-GCM, all parts in Base64. */
export interface Sealed {
  readonly key_id: string
  readonly iv: string
  readonly tag: string
  readonly data: string
}

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

/** The name and the key are authenticated: a record does not open under another name. */
const associated = (name: string, keyId: string) => Buffer.from(JSON.stringify(['svc.secret', 1, name, keyId]))

export function seal(name: string, value: string, key: Key): Sealed {
  // A random nonce repeats after 2^32 values with one key at the earliest.
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, key.bytes, iv, { authTagLength: TAG_BYTES }).setAAD(associated(name, key.id))
  const data = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()])
  return {
    key_id: key.id,
    iv: iv.toString('base64'),
    tag: cipher.getAuthTag().toString('base64'),
    data: data.toString('base64'),
  }
}

/** Opens a sealed value. Throws SECRET_UNREADABLE if no key fits, or the record was changed. */
export function unseal(name: string, sealed: Sealed, keys: readonly Key[]): string {
  const known = keys.map(key => key.id)
  const key = keys.find(({ id }) => id === sealed.key_id)
  if (!key) throw secretUnreadable(name, sealed.key_id, known)
  try {
    const decipher = createDecipheriv(CIPHER, key.bytes, Buffer.from(sealed.iv, 'base64'), { authTagLength: TAG_BYTES })
    decipher.setAAD(associated(name, key.id)).setAuthTag(Buffer.from(sealed.tag, 'base64'))
    return Buffer.concat([decipher.update(sealed.data, 'base64'), decipher.final()]).toString('utf8')
  } catch {
    throw secretUnreadable(name, sealed.key_id, known)
  }
}
