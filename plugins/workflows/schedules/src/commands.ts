import {
  SchedulesAdd,
  SchedulesList,
  SchedulesPause,
  SchedulesRemove,
  SchedulesResume,
  SchedulesRun,
} from './commands/schedules.ts'

export const COMMANDS = {
  'schedules:list': SchedulesList,
  'schedules:add': SchedulesAdd,
  'schedules:pause': SchedulesPause,
  'schedules:resume': SchedulesResume,
  'schedules:remove': SchedulesRemove,
  'schedules:run': SchedulesRun,
}
