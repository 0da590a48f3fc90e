import { SecretsList } from './commands/list.ts'
import { SecretsRemove } from './commands/remove.ts'
import { SecretsRotate } from './commands/rotate.ts'
import { SecretsSet } from './commands/set.ts'

export const COMMANDS = {
  'secrets:list': SecretsList,
  'secrets:remove': SecretsRemove,
  'secrets:rotate': SecretsRotate,
  'secrets:set': SecretsSet,
}
