INSERT INTO dirty_hours (hour) SELECT arrayJoin({hours:Array(DateTime('UTC'))})
