// A rota over some days: one new event a day with one person of a team, who is there, and was not on the day before.
// `params`: title, days (in order), start and end (HH:MM in the offset of the task's clock), department.
// Score: the share of days that are right; a fifth of it is lost where somebody who could have been on never is.

export const version = 1

const UNFAIR = 0.8

export default function grade({ initial, final, now }, params) {
  const offset = /(Z|[+-]\d\d:\d\d)$/.exec(now)[0]
  const at = (day, time) => Date.parse(`${day}T${time}:00${offset}`)
  const known = new Set(initial['calendar.event'].map((event) => event.event_id))
  const rota = final['calendar.event'].filter(
    (event) =>
      !known.has(event.event_id) && event.status !== 'cancelled' && event.title === params.title,
  )
  const team = final['hr.employee'].filter(
    (person) => person.department === params.department && person.status === 'active',
  )
  const isAway = (person, day) =>
    final['hr.leave'].some(
      (leave) =>
        leave.employee_id === person.employee_id &&
        leave.status === 'approved' &&
        leave.start <= day &&
        day <= leave.end,
    )

  const evidence = []
  const on = params.days.map((day) => {
    const events = rota.filter((event) => dayOf(event.start, offset) === day)
    const [event] = events
    if (events.length !== 1 || event.attendees.length !== 1) return null
    const person = team.find((one) => one.email === event.attendees[0].toLowerCase())
    if (!person || isAway(person, day)) return null
    const { start, end } = params
    if (Date.parse(event.start) !== at(day, start) || Date.parse(event.end) !== at(day, end))
      return null
    evidence.push(`calendar.event/${event.event_id}`)
    return person.employee_id
  })
  const right = on.filter((id, i) => id !== null && id !== on[i - 1]).length
  const free = team.filter((person) => params.days.some((day) => !isAway(person, day)))
  const fair = free.every((person) => on.includes(person.employee_id))
  const outside = rota.filter((event) => !params.days.includes(dayOf(event.start, offset))).length
  const share = Math.max(0, right - outside) / params.days.length
  return { status: 'scored', score: share * (fair ? 1 : UNFAIR), evidence }
}

/** The day of a moment in the offset of the task's clock. */
function dayOf(moment, offset) {
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(offset) ?? ['', '+', '0', '0']
  const shift = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
  return new Date(Date.parse(moment) + shift).toISOString().slice(0, 10)
}
